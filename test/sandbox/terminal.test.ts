import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine/engine.js'
import { Sandbox, type Terminal } from '../../src/sandbox/index.js'
import { rejectionOf } from '../engine/collect.js'
import { createPlainEngine, PlainDriver } from '../engine/plain-driver.js'
import { isRunning, markedSleep, waitUntil } from '../engine/processes.js'

let platform: Engine
let sandbox: Sandbox

beforeEach(async () => {
  platform = createPlainEngine(new PlainDriver())
  sandbox = await Sandbox.create({ platform, limits: { time: '300ms' } })
})
afterEach(() => platform[Symbol.asyncDispose]())

/** A screen of a terminal that can be waited for. */
class Screen {
  readonly #reader: { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }> }
  text = ''

  constructor({ output }: Pick<Terminal, 'output'>) {
    this.#reader = output.getReader() as never
  }

  async shows(wanted: string | RegExp): Promise<string> {
    while (!(typeof wanted === 'string' ? this.text.includes(wanted) : wanted.test(this.text))) {
      const { done, value } = await this.#reader.read()
      if (done) throw new Error(`ended before it showed ${String(wanted)}: ${JSON.stringify(this.text)}`)
      this.text += Buffer.from(value ?? []).toString()
    }
    return this.text
  }
}

describe('a terminal', () => {
  test('is one: a shell asks, what is typed is echoed, and it outlives the wall time of runs', async () => {
    const terminal = await sandbox.terminal({ command: ['sh', '-i'], env: { PS1: 'ready> ' }, cols: 100, rows: 30 })
    const screen = new Screen(terminal)
    await screen.shows('ready> ')
    await terminal.write('tty; stty size; echo "$TERM"; sleep 0.4; echo do""ne\r')
    const text = await screen.shows('done')
    expect(text).toMatch(/\/dev\/pts\/\d+\r\n30 100\r\nxterm-256color\r\n/)
    await terminal.write('exit 7\r')
    expect((await terminal.wait()).outcome).toEqual({ kind: 'exited', code: 7 })
  })

  test('tells its program when it is resized', async () => {
    const terminal = await sandbox.terminal({ command: `trap 'stty size; exit 3' WINCH; echo up; while :; do sleep 0.02; done` })
    const screen = new Screen(terminal)
    await screen.shows('up')
    await terminal.resize({ cols: 132, rows: 50 })
    await screen.shows('50 132')
    await terminal.wait()
    await terminal.resize({ cols: 80, rows: 24 })
    expect(await rejectionOf(terminal.resize({ cols: 0, rows: 24 }))).toMatchObject({ code: 'invalid' })
  })

  test('hands Ctrl-C to what is in front and not to the shell behind it', async () => {
    const { marker, command } = markedSleep()
    const terminal = await sandbox.terminal({ command: ['bash', '--norc', '-i'], env: { PS1: 'ready> ' } })
    const screen = new Screen(terminal)
    await screen.shows('ready> ')
    await terminal.write(`${command}\r`)
    await waitUntil(() => isRunning(marker))
    await terminal.write('\x03')
    await waitUntil(() => !isRunning(marker))
    await terminal.write('echo code $?\r')
    await screen.shows('code 130')
    await terminal.kill()
    expect((await terminal.wait()).outcome).toMatchObject({ kind: 'killed' })
  })

  test('is one of several, and is attached to with what it showed', async () => {
    const [one, other] = [await sandbox.terminal({ command: ['cat'], tag: 'one' }), await sandbox.terminal({ command: ['cat'], tag: 'other' })]
    await one.write('first\r')
    await other.write('second\r')
    await Promise.all([new Screen(one).shows(/first\r\nfirst\r\n/), new Screen(other).shows(/second\r\nsecond\r\n/)])
    const view = await sandbox.attach('one', { replay: true })
    await view.stdin.write('third\r')
    await new Screen({ output: view.stdout }).shows(/^first\r\nfirst\r\nthird\r\nthird\r\n/)
    await view.resize({ cols: 90, rows: 20 })
    await one.write('\x04')
    expect((await view.wait()).outcome).toEqual({ kind: 'exited', code: 0 })
  })

  test('ends with its program although others hold it', async () => {
    const { marker, command } = markedSleep()
    const terminal = await sandbox.terminal({ command: `trap '' HUP; ${command} & echo left; exit 4` })
    await new Screen(terminal).shows('left')
    expect((await terminal.wait()).outcome).toEqual({ kind: 'exited', code: 4 })
    // What was left may not have become its program yet.
    await waitUntil(() => isRunning(marker))
    await terminal.kill()
    expect(isRunning(marker)).toBe(false)
  })

  test('has a shell when no command is given, and is refused a size that is none', async () => {
    const terminal = await sandbox.terminal()
    await terminal.write('echo $((6 * 7)); exit\r')
    await new Screen(terminal).shows('42')
    expect((await terminal.wait()).outcome).toEqual({ kind: 'exited', code: 0 })
    for (const size of [{ cols: 0 }, { rows: 4097 }, { cols: 1.5 }, { rows: '24' as never }]) {
      expect(await rejectionOf(sandbox.terminal(size))).toMatchObject({ code: 'invalid', message: expect.stringMatching(/^(cols|rows): /) })
    }
    expect(await rejectionOf((await sandbox.spawn(['true'])).resize({ cols: 80, rows: 24 }))).toMatchObject({ code: 'conflict' })
  })
})
