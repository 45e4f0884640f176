import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { unifiedDiff } from '../../src/cli/unified-diff.js'

/** What patch makes of the first text by our difference. */
function patched(before: string, lines: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'gbx-diff-'))
  try {
    writeFileSync(join(folder, 'file'), before)
    const patch = `--- file\n+++ file\n${lines.join('\n')}\n`
    const { status, stdout, stderr } = spawnSync('git', ['apply', '--unidiff-zero', '-p0', '-'], { cwd: folder, input: patch, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${stdout}${stderr}\n${patch}`)
    return readFileSync(join(folder, 'file'), 'utf8')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const numbers = Array.from({ length: 40 }, (_, index) => `${index}\n`)

test('shows what changed with three lines around it', () => {
  const after = numbers.map((line, index) => (index === 20 ? 'twenty\n' : line))
  expect(unifiedDiff(numbers.join(''), after.join(''))).toEqual(['@@ -18,7 +18,7 @@', ' 17', ' 18', ' 19', '-20', '+twenty', ' 21', ' 22', ' 23'])
})

test.each([
  ['a line at the start', 'a\nb\n', 'x\na\nb\n'],
  ['a line at the end', 'a\nb\n', 'a\nb\nx\n'],
  ['a last line without an end', 'a\nb\n', 'a\nb'],
  ['a last line that gets its end', 'a\nb', 'a\nb\n'],
  ['everything', 'a\nb\nc\n', 'x\ny\n'],
  ['two places far apart', numbers.join(''), ['start\n', ...numbers.slice(1, 39), 'end\n'].join('')],
  ['lines that repeat', 'a\na\nb\na\n', 'b\na\na\na\nb\n'],
])('can be applied as a patch: %s', (_what, before, after) => {
  expect(patched(before, unifiedDiff(before, after) ?? [])).toBe(after)
})

test('is found for random texts, and takes no more edits than are there', () => {
  let seed = 7
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed % below
  }
  for (let round = 0; round < 30; round += 1) {
    const before = Array.from({ length: random(12) + 1 }, () => `${random(4)}\n`)
    const after = [...before]
    for (let change = 0; change < 3; change += 1) after.splice(random(after.length + 1), random(2), `${random(4)}\n`)
    const lines = unifiedDiff(before.join(''), after.join('')) ?? []
    if (lines.length > 0) expect(patched(before.join(''), lines)).toBe(after.join(''))
    else expect(after).toEqual(before)
    expect(lines.filter((line) => /^[+-]/.test(line)).length).toBeLessThanOrEqual(6)
  }
})

test('of texts beyond its bounds there is none', () => {
  expect(unifiedDiff('a\n'.repeat(11), 'b\n', { mostLines: 10, mostEdits: 10 })).toBeUndefined()
  expect(unifiedDiff('a\nb\nc\n', 'x\ny\nz\n', { mostLines: 10, mostEdits: 5 })).toBeUndefined()
  expect(unifiedDiff('same\n', 'same\n')).toEqual([])
})
