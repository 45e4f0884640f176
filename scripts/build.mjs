#!/usr/bin/env node
// Bundles src into dist, copies what is not TypeScript, and packs the kernels of runtimes/. Each file is replaced in one step and only when it differs, so that a CLI that is
// just starting never reads half a file; what no longer has a source is removed.
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeCli, makeLibrary } from './bundles.mjs'
import { makeRuntimes } from './runtimes.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const source = join(root, 'src')
const target = join(root, 'dist')
const executable = 'cli/main.js'

/** @param {string} folder @returns {string[]} relative to it */
function filesBelow(folder) {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
}

/** @param {string} path relative to dist @param {Uint8Array} bytes */
function place(path, bytes) {
  const full = join(target, path)
  if (existsSync(full) && readFileSync(full).equals(bytes)) return
  mkdirSync(dirname(full), { recursive: true })
  const draft = `${full}.${process.pid}.draft`
  writeFileSync(draft, bytes)
  if (path === executable) chmodSync(draft, 0o755)
  renameSync(draft, full)
}

const sources = filesBelow(source)
const typescript = sources.filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))
const outputs = new Map([...(await makeLibrary()), ...(await makeCli())])
for (const path of sources) if (!path.endsWith('.ts')) outputs.set(path, readFileSync(join(source, path)))
for (const [path, text] of await makeRuntimes()) outputs.set(join('runtimes', path), Buffer.from(text))
for (const [path, bytes] of outputs) place(path, bytes)

const declarations = new Set(typescript.map((path) => path.replace(/\.ts$/, '.d.ts')))
for (const path of filesBelow(target)) {
  if (!path.startsWith('native/') && !outputs.has(path) && !declarations.has(path)) rmSync(join(target, path))
}
