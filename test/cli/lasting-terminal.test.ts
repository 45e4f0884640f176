import { afterAll, describe, expect, test } from 'vitest'
import { commandAtTerminal, type Seen, type Step } from './at-terminal.js'
import { processesWith } from './cli.js'
import { lastingHome, until } from './lasting.js'

const home = lastingHome()
afterAll(() => home[Symbol.asyncDispose]())

const atTerminal = (args: readonly string[], steps: readonly Step[]): Promise<Seen> => commandAtTerminal(args, steps, home.env)
const left = { restored: true, failure: null }

describe('in a sandbox that lasts', () => {
  test.each([
    ['exec --tty', (id: string) => ['exec', '-t', '-e', 'PS1=ready> ', id, '--', 'bash', '--norc', '-i']],
    ['sh SANDBOX -- COMMAND', (id: string) => ['sh', '-e', 'PS1=ready> ', id, '--', 'bash', '--norc', '-i']],
  ])('%s is at the own terminal, follows its size, and hands on its exit code', async (_, args) => {
    const id = await home.create()
    const seen = await atTerminal(args(id), [
      ['expect', 'ready> '],
      ['send', 'stty size; echo made > file\r'],
      ['expect', '24 80'],
      ['resize', 50, 132],
      ['send', 'until stty size | grep "^50 132"; do sleep 0.05; done\r'],
      ['expect', '\r50 132\r\n'],
      ['send', 'exit 42\r'],
    ])
    expect(seen).toMatchObject({ code: 42, ...left })
    expect((await home.cli(['exec', id, '--', 'cat', 'file'])).stdout).toBe('made\n')
  })

  test('sh SANDBOX is a shell, in which Ctrl-C is the program’s', async () => {
    const id = await home.create(['--name', 'seat'])
    const seen = await atTerminal(
      ['sh', 'seat'],
      [
        // Its own words, not what was typed.
        ['send', 'echo u""p; sleep 60\r'],
        ['expect', 'up\r\n'],
        ['send', '\x03'],
        ['expect', '^C'],
        ['send', 'exit 3\r'],
      ],
    )
    expect(seen).toMatchObject({ code: 3, ...left })
    expect((await home.cli(['ls', '-q'])).stdout).toContain(id)
  })

  test.each([
    ['SIGTERM', 15, 143],
    ['SIGHUP', 1, 129],
  ])('told to stop by %s ends the program, leaves the sandbox, and the terminal as it was', async (_, number, code) => {
    const id = await home.create()
    const marker = `67.${process.pid}${number}7`
    const seen = await atTerminal(
      ['exec', '-t', id, '--', 'sh', '-c', `echo up; sleep ${marker}`],
      [
        ['expect', 'up'],
        ['signal', number],
      ],
    )
    expect(seen).toMatchObject({ code, ...left })
    await until(() => processesWith(marker).length === 0, 'the end of the program')
    expect((await home.cli(['exec', id, '--', 'true'])).code).toBe(0)
  })

  test('what only a fresh one can be given is refused, and so is a program without its --', async () => {
    const id = await home.create()
    expect((await atTerminal(['sh', '-m', '64m', id], [])).text).toContain('--memory: is for a fresh sandbox')
    expect((await atTerminal(['sh', 'bash'], [])).text).toContain("there is no sandbox 'bash'")
  })

  test('stats --follow draws its table over itself until Ctrl-C', async () => {
    const id = await home.create(['--name', 'drawn'])
    const seen = await atTerminal(
      ['stats', '-f', id],
      [
        ['expect', 'drawn'],
        ['expect', '\x1b[2A\x1b[J'],
        ['expect', 'drawn'],
        ['send', '\x03'],
      ],
    )
    expect(seen).toMatchObject({ code: 130, ...left })
  })
})
