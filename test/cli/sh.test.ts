import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { comesToFront } from '../../src/conformance/comes-to-front.js'
import { commandAtTerminal, type Seen, type Step } from './at-terminal.js'
import { cli, fake, processesWith } from './cli.js'

const sigterm = 15

const atTerminal = (args: readonly string[], steps: readonly Step[]): Promise<Seen> => commandAtTerminal(['sh', '--quiet', ...args], steps)

/** A shell that reads nothing of this machine's set-up. */
const plain = [...fake, '--env', 'PS1=ready> ', '--env', `PROGRAM=${comesToFront}`, '--', 'bash', '--norc', '-i']

/** What is typed before the job is in front is typed to the shell. */
const inFront: readonly Step[] = [
  ['send', '/usr/bin/python3 -IS -c "$PROGRAM"\r'],
  ['expect', 'in front 0\r\n'],
]

const left = { restored: true, failure: null }

describe('glovebox sh', () => {
  test('is a shell at the own terminal, which knows its size and hands on its exit code', async () => {
    const seen = await atTerminal(plain, [
      ['expect', 'ready> '],
      ['send', 'stty size; tty; echo "$TERM"\r'],
      ['expect', '24 80\r\n/dev/pts/'],
      ['expect', 'xterm-256color'],
      ['resize', 50, 132],
      // What is typed may overtake the news of the size.
      ['send', 'until stty size | grep "^50 132"; do sleep 0.05; done\r'],
      ['expect', '\r50 132\r\n'],
      ['send', 'exit 42\r'],
    ])
    expect(seen).toMatchObject({ code: 42, ...left })
  })

  test('gives every key to what runs in it, Ctrl-C and Ctrl-D too', async () => {
    const seen = await atTerminal(plain, [
      ['expect', 'ready> '],
      ...inFront,
      ['send', '\x03'],
      ['expect', 'ready> '],
      ['send', 'echo code $?\r'],
      ['expect', 'code 130'],
      ['expect', 'ready> '],
      ...inFront,
      ['send', '\x1a'],
      ['expect', 'Stopped'],
      ['expect', 'ready> '],
      // A shell that has not noticed its job's end yet would not leave.
      ['send', 'kill -9 %1; while kill -0 %1 2>/dev/null; do :; done; (exit 6)\r'],
      ['expect', 'Killed'],
      ['expect', 'ready> '],
      ['send', '\x04'],
    ])
    expect(seen).toMatchObject({ code: 6, ...left })
  })

  test('runs the program that is given, and says when there is none', async () => {
    expect(await atTerminal([...fake, '--', 'sh', '-c', 'test -t 0 && test -t 1 && test -t 2 && exit 9'], [])).toMatchObject({ code: 9, ...left })
    const seen = await atTerminal([...fake, '--', 'no-such-program'], [])
    expect(seen).toMatchObject({ code: 127, ...left, text: expect.stringContaining('no-such-program') })
  })

  test('is ended by --timeout, with one line at the left of the screen', async () => {
    const seen = await atTerminal([...fake, '--timeout', '4s', '--', 'sh', '-c', 'stty raw; printf partial; sleep 30'], [])
    expect(seen).toMatchObject({ code: 124, ...left })
    expect(seen.text).toMatch(/partial.*\r\n.*glovebox:.* longer than 4 s/s)
  })

  test.each([
    ['SIGTERM', sigterm, 143],
    ['SIGHUP', 1, 129],
    ['SIGQUIT', 3, 131],
  ])('told to stop by %s takes everything along and leaves the terminal as it was', async (_, number, code) => {
    const marker = `31.${process.pid}${number}7`
    const seen = await atTerminal(
      [...fake, '--', 'sh', '-c', `echo up; sleep ${marker}`],
      [
        ['expect', 'up'],
        ['signal', number],
      ],
    )
    expect(seen).toMatchObject({ code, ...left })
    expect(processesWith(marker)).toEqual([])
  })

  test.each(['sh', 'run'])('whose window is closed takes everything along and ends by SIGHUP: %s', async (name) => {
    const marker = `32.${process.pid}${name.length}7`
    const steps: Step[] = [['expect', 'up'], ['close']]
    const seen = await commandAtTerminal([name, '--quiet', ...fake, '--', 'sh', '-c', `echo up; sleep ${marker}`], steps)
    // Ended by a signal is told as its number below zero.
    expect([[-1, 129].includes(seen.code), seen.code, seen.failure]).toEqual([true, seen.code, null])
    await expect.poll(() => processesWith(marker)).toEqual([])
  })

  test('whose sandbox is gone from under it says so and leaves the terminal as it was', async () => {
    // Without walls the program reaches its own warden: the parent of its parent.
    const killWarden = 'keeper=$(ps -o ppid= -p $$ | tr -d " "); kill -9 $(ps -o ppid= -p $keeper); sleep 30'
    const seen = await atTerminal([...fake, '--', 'sh', '-c', killWarden], [])
    expect(seen).toMatchObject({ code: 125, ...left, text: expect.stringContaining('ended') })
  })

  test.skipIf(!existsSync('/usr/bin/vim'))('has room for an editor', async () => {
    const seen = await atTerminal(
      [...fake, '--', 'sh', '-c', 'vim -u NONE -n "$HOME/gbx-vim-test-$$.txt"; cat "$HOME/gbx-vim-test-$$.txt"; rm "$HOME/gbx-vim-test-$$.txt"'],
      [
        ['expect', '~'],
        ['send', 'ihello from vim\x1b'],
        ['send', ':wq\r'],
        ['expect', 'hello from vim\r\n'],
      ],
    )
    expect(seen).toMatchObject({ code: 0, ...left })
  })

  test('works in a real cell, with root and home of its own', async () => {
    const seen = await atTerminal(
      ['--env', `PROGRAM=${comesToFront}`],
      [
        ['expect', '\x1b[36mglovebox\x1b[0m:/workspace$ '],
        ['send', 'stty size; id -u; pwd; tty\r'],
        ['expect', '24 80\r\n1000\r\n/workspace\r\n/dev/pts/0'],
        ...inFront,
        ['send', '\x03'],
        ['expect', '^C'],
        ['send', 'exit 3\r'],
      ],
    )
    expect(seen).toMatchObject({ code: 3, ...left })
  })

  test('takes files in before it begins, and out when it has ended', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gbx-sh-'))
    try {
      writeFileSync(join(folder, 'in.txt'), 'from outside\n')
      const flags = ['--upload', `${folder}/in.txt:/workspace/in.txt`, '--download', `/workspace/out.txt:${folder}/out.txt`]
      const seen = await atTerminal([...flags, '--', 'sh', '-c', 'tr a-z A-Z < in.txt > out.txt; exit 3'], [])
      expect(seen).toMatchObject({ code: 3, ...left })
      expect(readFileSync(join(folder, 'out.txt'), 'utf8')).toBe('FROM OUTSIDE\n')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('without a terminal says what to do instead', async () => {
    const { code, stdout, stderr } = await cli(['sh', ...fake])
    expect([code, stdout]).toEqual([125, ''])
    expect(stderr).toMatch(/stdin is no terminal.*\n.*glovebox run -- /s)
  })
})
