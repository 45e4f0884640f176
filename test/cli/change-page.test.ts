import pico from 'picocolors'
import { describe, expect, test } from 'vitest'
import { changePage, type PageOrder } from '../../src/cli/change-page.js'
import { longPage, shortPage, wholePage } from '../../src/cli/page-bounds.js'
import type { ChangeSet, PendingChange } from '../../src/contract/changes.js'

const added = (path: string): PendingChange => ({ path, before: { type: 'none' }, after: { type: 'file', mode: 0o644, size: 5, hash: path } })

function setOf(changes: readonly PendingChange[], skipped: ChangeSet['skipped'] = []): ChangeSet {
  return { version: 1, id: 'a'.repeat(20), folder: '/f', createdAt: '', command: [], changes: [...changes], skipped }
}

async function linesOf(set: ChangeSet, content: (path: string) => string | Uint8Array, order: Partial<PageOrder> = {}): Promise<string[]> {
  const store = {
    newContent: (_set: ChangeSet, { path }: PendingChange) => Promise.resolve(Buffer.from(content(path))),
    oldContent: () => Promise.resolve(undefined),
  }
  const lines: string[] = []
  for await (const line of changePage({ set, store, colors: pico.createColors(false), bounds: longPage, more: 'glovebox changes aaaaaaaa --all', ...order }))
    lines.push(line)
  return lines
}

const numbered = (count: number): string => Array.from({ length: count }, (_, index) => `${index}\n`).join('')
const isShown = (line: string): boolean => /^\+\d/.test(line)

describe('a page of changes', () => {
  test('shows so many lines of each file and of all, counts what is beyond and says how to see it', async () => {
    const set = setOf(Array.from({ length: 8 }, (_, index) => added(`f${index}`)))
    const lines = await linesOf(set, () => numbered(1500))
    expect(lines.filter(isShown)).toHaveLength(5000 - 5 * 4)
    expect(lines.filter((line) => line.startsWith('…'))).toEqual([
      ...[0, 1, 2, 3].map((index) => `… and 504 more lines of f${index}: glovebox changes aaaaaaaa --all`),
      '… and 504 more lines and 3 more files: glovebox changes aaaaaaaa --all',
    ])
    const all = await linesOf(set, () => numbered(1500), { bounds: wholePage })
    expect([all.filter(isShown).length, all.filter((line) => line.startsWith('…'))]).toEqual([12_000, []])
  })

  test('names so many, whatever they are', async () => {
    const set = setOf(
      Array.from({ length: 2500 }, (_, index) => added(`${index}`)),
      Array.from({ length: 2001 }, (_, index) => ({ path: `s${index}`, why: 'it is a FIFO' })),
    )
    const lines = await linesOf(set, () => 'x\n')
    expect(lines.filter((line) => line.startsWith('A  '))).toHaveLength(2000)
    expect(lines.filter((line) => line.startsWith('!  '))).toHaveLength(2000)
    expect(lines).toContain('… and 500 more names: glovebox changes aaaaaaaa --all')
    expect(lines).toContain('… and 1 more name: glovebox changes aaaaaaaa --all')
    expect((await linesOf(set, () => 'x\n', { bounds: wholePage })).filter((line) => line.startsWith('A  '))).toHaveLength(2500)
  })

  test('cuts a line that has no end, and a name', async () => {
    const [name = '', ...rest] = await linesOf(setOf([added('n'.repeat(3000))]), () => 'y'.repeat(200_000))
    expect(name).toBe(`A  ${'n'.repeat(1000)}… (2000 more characters)  5 bytes`)
    expect(rest.filter((line) => line.startsWith('+y'))).toEqual([`+${'y'.repeat(999)}… (199001 more characters)`])
  })

  test('ends when its time is over, with what it has, and counts the rest', async () => {
    const controller = new AbortController()
    const content = (): string => {
      controller.abort()
      return 'text\n'
    }
    const lines = await linesOf(setOf(['a', 'b', 'c'].map(added)), content, { bounds: shortPage, more: 'glovebox changes aaaaaaaa', signal: controller.signal })
    expect(lines).toEqual([
      'A  a  5 bytes',
      'A  b  5 bytes',
      'A  c  5 bytes',
      '',
      '--- /dev/null',
      '+++ b/a',
      '@@ -0,0 +1 @@',
      '+text',
      '… and 2 more files: glovebox changes aaaaaaaa',
    ])
  })

  test('prints no control character of a name, a link or a content, and nothing of what is binary', async () => {
    const link: PendingChange = { path: 'l\u001b[2J', before: { type: 'none' }, after: { type: 'link', target: 't\r\u009bm\udcff' } }
    const contents: Record<string, string | Uint8Array> = {
      'bin\u0007': Buffer.from('\u001b]0;title\u0007\0'),
      'latin\udce9': Buffer.from([0x1b, 0xe9, 0x0a]),
      'text\u202e': '\u001b[31mred\u001b[0m\u0008\r\n\ttab\n',
    }
    const set = setOf([...Object.keys(contents).map(added), link], [{ path: 'odd\n\u001b', why: 'it is\u001b a FIFO' }])
    for (const bounds of [shortPage, longPage, wholePage]) {
      const lines = await linesOf(set, (path) => contents[path] ?? '', { bounds })
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
      expect(lines.join('\n')).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]|\p{Cs}/u)
      expect(lines).toContain('A  bin\\x07  5 bytes')
      expect(lines).toContain('A  latin\\xe9  5 bytes')
      expect(lines).toContain('A  l\\x1b[2J  → t\\x0d\\x9bm\\xff')
      expect(lines).toContain('+\\x1b[31mred\\x1b[0m\\x08\\x0d')
      expect(lines).toContain('+\ttab')
      expect(lines.filter((line) => line === 'binary, or too large to show')).toHaveLength(2)
      expect(lines.join('\n')).not.toContain('title')
    }
  })
})
