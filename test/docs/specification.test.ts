import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const rows = read('SPECIFICATION.md')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| promise'))
  .map((line) => line.split('|').map((cell) => cell.trim()))

it('promises something', () => {
  expect(rows.length).toBeGreaterThan(10)
})

it.each(rows)('|%s| %s: the test that holds it exists', (_start, _promise, _number, heldBy) => {
  const [, path = '', name = ''] = /^`([^`]+)`: (.+)$/.exec(heldBy) ?? []
  expect(path, `"${heldBy}" must name a file and a test`).not.toBe('')
  expect(read(path)).toContain(name)
})

it('the architecture fits 150 lines', () => {
  expect(read('ARCHITECTURE.md').trimEnd().split('\n').length).toBeLessThanOrEqual(150)
})
