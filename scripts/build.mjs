#!/usr/bin/env node
// Transpiles src to dist one to one, copies what is not TypeScript, and packs the kernels of runtimes/. Each file is replaced in one step and only when it differs, so that a CLI that is
// just starting never reads half a file; what no longer has a source is removed.
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildPackages, makeRuntimes } from './runtimes.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const source = join(root, 'src')
const target = join(root, 'dist')
const executable = 'cli/main.js'
const shebang = '#!/usr/bin/env node\n'

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

/** @param {readonly string[]} sources @returns {Promise<Map<string, Uint8Array>>} */
async function transpile(sources) {
  const esbuild = /** @type {import('esbuild')} */ (buildPackages('esbuild'))
  const { outputFiles } = await esbuild.build({
    entryPoints: sources.map((path) => join(source, path)),
    outbase: source,
    outdir: target,
    absWorkingDir: root,
    tsconfig: join(root, 'tsconfig.json'),
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'silent',
    write: false,
  })
  return new Map(outputFiles.map((file) => [relative(target, file.path), file.contents]))
}

/** @param {Uint8Array} code */
function withShebang(code) {
  const text = Buffer.from(code).toString()
  return Buffer.from(text.startsWith('#!') ? text : shebang + text)
}

const sources = filesBelow(source)
const typescript = sources.filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))
const outputs = await transpile(typescript)
for (const path of sources) if (!path.endsWith('.ts')) outputs.set(path, readFileSync(join(source, path)))
const main = outputs.get(executable)
if (main !== undefined) outputs.set(executable, withShebang(main))
for (const [path, text] of await makeRuntimes()) outputs.set(join('runtimes', path), Buffer.from(text))
for (const [path, bytes] of outputs) place(path, bytes)

const declarations = new Set(typescript.map((path) => path.replace(/\.ts$/, '.d.ts')))
for (const path of filesBelow(target)) {
  if (!path.startsWith('native/') && !outputs.has(path) && !declarations.has(path)) rmSync(join(target, path))
}
