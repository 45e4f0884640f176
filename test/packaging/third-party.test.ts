import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from './package.js'

const text = readFileSync(join(root, 'THIRD-PARTY.md'), 'utf8')
const bundled = text.slice(text.indexOf('## In `dist/parts/`'))
const rows = [...bundled.matchAll(/^\| \[([^\]]+)\]\([^)]+\) \| (\S+) \|/gm)].map(([, name = '', version = '']) => [name, version])

/** Packages that esbuild leaves to be found beside us. */
const left = ['@modelcontextprotocol/server', 'libsql', 'ws']

it('every dependency that is bundled is listed with its version, and nothing else', () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: Record<string, string> }
  expect(rows.sort()).toEqual(
    Object.entries(dependencies)
      .filter(([name]) => !left.includes(name))
      .sort(),
  )
})

it('the parts of the library hold no other package', () => {
  const parts = readdirSync(join(root, 'dist/parts')).map((name) => readFileSync(join(root, 'dist/parts', name), 'utf8'))
  const inside = new Set(parts.flatMap((part) => [...part.matchAll(/^\/\/ (?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)\//gm)].map(([, name]) => name)))
  expect([...inside]).toEqual(['zod'])
})

it('the program of the command asks for no other package at run time', () => {
  const program = readFileSync(join(root, 'dist/cli/program.js'), 'utf8')
  const names = [...program.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, name = '']) => name)
  const asked = new Set(names.filter((name) => !name.startsWith('node:')).map((name) => name.split('/').slice(0, 2).join('/')))
  // A database is asked for by another name of `require`, since its program is a machine's own.
  expect([...asked].sort()).toEqual(left.filter((name) => name !== 'libsql'))
})
