#!/usr/bin/env node
// Writes the published JSON Schemas from the zod schemas that the code itself uses.
// node scripts/schemas.mjs [--check]   --check writes nothing, and fails when a file is not in step
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))

/** `io`: whether a file is what a person writes (input) or what we write (output). @type {readonly { file: string, module: string, name: string, title: string, io: 'input' | 'output' }[]} */
const published = [
  { file: 'policy.schema.json', module: 'src/contract/policy.ts', name: 'policySchema', title: 'A policy of Glovebox', io: 'input' },
  { file: 'receipt.schema.json', module: 'src/contract/receipt.ts', name: 'receiptSchema', title: 'A receipt of Glovebox', io: 'output' },
]

/** Sources have no JavaScript beside them: each is bundled with zod in memory. @param {string} module @returns {Promise<Record<string, any>>} */
async function load(module) {
  const stdin = { contents: `export { z } from 'zod'; export * from './${module}'`, resolveDir: root, loader: /** @type {const} */ ('ts') }
  const { outputFiles } = await build({ stdin, bundle: true, write: false, format: 'esm', platform: 'node', logLevel: 'silent' })
  return await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0]?.contents ?? []).toString('base64')}`)
}

/** @param {typeof published[number]} entry */
async function textOf({ file, module, name, title, io }) {
  const { z, [name]: source } = await load(module)
  const { $schema, ...schema } = z.toJSONSchema(source, { io, unrepresentable: 'any' })
  const head = { $schema, $id: `urn:glovebox:${file}`, title }
  return `${JSON.stringify({ ...head, ...schema }, undefined, 2)}\n`
}

const isCheck = process.argv.includes('--check')
if (!isCheck) mkdirSync(join(root, 'schemas'), { recursive: true })
for (const entry of published) {
  const path = join(root, 'schemas', entry.file)
  const text = await textOf(entry)
  if (existsSync(path) && readFileSync(path, 'utf8') === text) continue
  if (isCheck) {
    process.stdout.write(`schemas/${entry.file} is not in step with ${entry.module}: node scripts/schemas.mjs\n`)
    process.exitCode = 1
  } else writeFileSync(path, text)
}
