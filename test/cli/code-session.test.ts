import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commandAtTerminal, type Seen, type Step } from './at-terminal.js'
import { fake } from './cli.js'

const patience = 120_000
const folder = mkdtempSync(join(tmpdir(), 'gbx-session-'))
const before = { ...process.env }

beforeAll(() => {
  process.env['GLOVEBOX_HISTORY_DIR'] = join(folder, 'history')
  process.env['NO_COLOR'] = '1'
})
afterAll(() => {
  process.env = before
  rmSync(folder, { recursive: true })
})

const session = (steps: readonly Step[], flags: readonly string[] = []): Promise<Seen> => commandAtTerminal(['code', '-q', ...fake, ...flags], steps)
const left = { code: 0, restored: true, failure: null }

describe('a session of glovebox code', { timeout: patience }, () => {
  test('remembers, continues blocks until a blank line, and shows values', async () => {
    const seen = await session([
      ['expect', 'py[1]> '],
      ['send', 'x = 6 * 7\r'],
      ['expect', 'py[2]> '],
      ['send', 'def f(n):\r'],
      ['expect', '...> '],
      ['send', '    return n + x\r'],
      ['expect', '...> '],
      ['send', '\r'],
      ['expect', 'py[3]> '],
      ['send', 'f(1)\r'],
      ['expect', 'l43\r\n'],
      ['expect', 'py[4]> '],
      ['send', 'print([1,\r'],
      ['expect', '...> '],
      ['send', '2])\r'],
      ['expect', 'l[1, 2]\r\n'],
      ['expect', 'py[5]> '],
      ['send', '\x04'],
    ])
    expect(seen).toMatchObject(left)
  })

  test('takes a paste as one piece, blank lines and all', async () => {
    const seen = await session([
      ['expect', 'py[1]> '],
      ['send', '\x1b[200~for i in range(2):\n    print("p", i)\n\n    print("q", i)\x1b[201~'],
      ['send', '\r'],
      ['expect', 'lp 0\r\nq 0\r\np 1\r\nq 1\r\n'],
      ['expect', 'py[2]> '],
      ['send', '.exit\r'],
    ])
    expect(seen).toMatchObject(left)
  })

  test('is interrupted by Ctrl-C again and again, drops what is typed, and keeps its memory', async () => {
    const loop: Step[] = [
      ['send', 'print("on" + "ward"); exec("while True: pass")\r'],
      ['expect', 'onward'],
      ['send', '\x03'],
      ['expect', 'KeyboardInterrupt'],
    ]
    const seen = await session([
      ['expect', 'py[1]> '],
      ['send', 'kept = 5\r'],
      ['expect', 'py[2]> '],
      ...loop,
      ['expect', 'py[3]> '],
      ...loop,
      ['expect', 'py[4]> '],
      ['send', 'garbage'],
      ['expect', 'garbage'],
      ['send', '\x03'],
      ['expect', '^C'],
      ['expect', 'py[4]> '],
      ['send', 'kept\r'],
      ['expect', 'l5\r\n'],
      ['expect', 'py[5]> '],
      ['send', '\x04'],
    ])
    expect(seen).toMatchObject(left)
  })

  test('answers input(), shows no secret, and remembers neither', async () => {
    const seen = await session([
      ['expect', 'py[1]> '],
      ['send', 'name = input("wh" + "o? ")\r'],
      ['expect', 'who? '],
      ['send', 'Ada\r'],
      ['expect', 'py[2]> '],
      ['send', 'import getpass; word = getpass.getpass("wor" + "d? ")\r'],
      ['expect', 'word? '],
      ['send', 'sesame\r'],
      ['expect', 'py[3]> '],
      ['send', '[name, word.upper()]\r'],
      ['expect', "['Ada', 'SESAME']"],
      ['expect', 'py[4]> '],
      ['send', '\x04'],
    ])
    expect(seen).toMatchObject(left)
    expect(seen.text).not.toContain('sesame')
    const history = join(folder, 'history', 'code')
    expect(readFileSync(history, 'utf8').split('\n')).not.toEqual(expect.arrayContaining(['Ada']))
    expect(readFileSync(history, 'utf8')).not.toContain('sesame')
    expect(statSync(history).mode & 0o777).toBe(0o600)
  })

  test('has the history of the one before, each line once', async () => {
    await session([
      ['expect', 'py[1]> '],
      ['send', '"from " + "before"\r'],
      ['expect', 'from before'],
      ['expect', 'py[2]> '],
      ['send', '"from " + "before"\r'],
      ['expect', 'from before'],
      ['expect', 'py[3]> '],
      ['send', '\x04'],
    ])
    const lines = readFileSync(join(folder, 'history', 'code'), 'utf8').split('\n')
    expect(lines.filter((line) => line === '"from " + "before"').length).toBe(1)
    const seen = await session([
      ['expect', 'py[1]> '],
      ['send', '\x1b[A'],
      ['expect', '"from " + "before"'],
      ['send', '\r'],
      ['expect', "'from before'"],
      ['expect', 'py[2]> '],
      ['send', '\x04'],
    ])
    expect(seen).toMatchObject(left)
  })

  test('has words of its own: .lang, .load, .save, .files, .restart', async () => {
    writeFileSync(join(folder, 'loaded.py'), 'loaded = "from the file"\nopen("made.txt", "w").write("12345")\n')
    const saved = join(folder, 'saved.py')
    const seen = await session([
      ['expect', 'py[1]> '],
      ['send', `.load ${folder}/loaded.py\r`],
      ['expect', 'py[2]> '],
      ['send', 'loaded\r'],
      ['expect', "'from the file'"],
      ['expect', 'py[3]> '],
      ['send', '.files\r'],
      ['expect', 'made.txt  5 bytes'],
      ['expect', 'py[3]> '],
      ['send', `.save ${saved}\r`],
      ['expect', 'wrote '],
      ['expect', 'py[3]> '],
      ['send', '.restart\r'],
      ['expect', 'begins again'],
      ['expect', 'py[3]> '],
      ['send', 'loaded\r'],
      ['expect', 'NameError'],
      ['expect', 'py[4]> '],
      ['send', '.nonsense\r'],
      ['expect', 'there is no .nonsense'],
      ['expect', 'py[4]> '],
      ['send', '.lang js\r'],
      ['expect', 'js[4]> '],
      ['send', '[1, 2].map((n) => {\r'],
      ['expect', '...> '],
      ['send', 'return n * 2 })\r'],
      ['expect', '[ 2, 4 ]'],
      ['expect', 'js[5]> '],
      ['send', '.exit\r'],
    ])
    expect(seen).toMatchObject(left)
    expect(readFileSync(saved, 'utf8')).toContain('loaded = "from the file"')
  })

  test('told to stop leaves the terminal as it was', async () => {
    expect(
      await session([
        ['expect', 'py[1]> '],
        ['signal', 15],
      ]),
    ).toMatchObject({ ...left, code: 143 })
    expect(
      await session([
        ['expect', 'py[1]> '],
        ['send', 'print("on" + "ward"); exec("while True: pass")\r'],
        ['expect', 'onward'],
        ['signal', 15],
      ]),
    ).toMatchObject({ ...left, code: 143 })
  })
})
