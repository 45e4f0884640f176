import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

const entry = fileURLToPath(new URL('../../src/client/index.ts', import.meta.url))
const mostBytes = 40_000

test('the client for browsers needs nothing of Node and no package, and has at most 40 kB gzipped', async () => {
  const { outputFiles, metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    write: false,
    metafile: true,
    logLevel: 'silent',
  })
  const inputs = Object.keys(metafile.inputs)
  expect(inputs.filter((path) => /node_modules|^node:/.test(path))).toEqual([])
  const [output] = outputFiles
  const text = output?.text ?? ''
  expect(text).not.toMatch(/["']node:|\brequire\(|\bprocess\.|\bBuffer\./)
  expect(gzipSync(text).length).toBeLessThan(mostBytes)
})
