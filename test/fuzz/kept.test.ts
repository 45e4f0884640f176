/** What `npm run fuzz` begins with, and what it found once: each of them is tried again. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { targets } from './targets.js'

const kept = join(import.meta.dirname, 'kept')
const keptOf = (name: string): Uint8Array[] =>
  existsSync(join(kept, name)) ? readdirSync(join(kept, name)).map((file) => new Uint8Array(readFileSync(join(kept, name, file)))) : []
const toBytes = (seed: string | Uint8Array): Uint8Array => (typeof seed === 'string' ? new TextEncoder().encode(seed) : new Uint8Array(seed))

test('every target is a file, and every file a target', () => {
  const files = readdirSync(join(import.meta.dirname, 'targets')).map((file) => file.replace(/\.ts$/, ''))
  expect(targets.map(({ name }) => name)).toEqual(files.sort())
})

test.each(targets.map((target) => [target.name, target] as const))(
  '%s holds what it promises of its seeds, and of what was found once',
  async (name, target) => {
    const inputs = [...target.seeds.map(toBytes), ...keptOf(name)]
    expect(inputs.length).toBeGreaterThan(2)
    for (const input of inputs) await target.run(input)
  },
)
