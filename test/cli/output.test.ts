import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { cliPath, exitCodeOf, fake, startCli } from './cli.js'
import { isBwrapReady } from './machine.js'
import { testUnless } from '../unless.js'

const talkative: readonly (readonly [string, readonly string[]])[] = [
  ['run', ['run', '-q', ...fake, '--', 'echo', 'x']],
  ['run --json', ['run', '--json', ...fake, '--', 'true']],
  ['an error as JSON', ['run', '--json', '--user', 'bob', '--', 'true']],
  ['doctor', ['doctor']],
  ['doctor --json', ['doctor', '--json']],
  ['demo', ['demo', ...fake]],
  ['--version', ['--version']],
  ['--help', ['--help']],
  ['help run', ['help', 'run']],
  ['no argument at all', []],
]

describe.each(talkative)('the output of %s', (_, args) => {
  test('that fits nowhere is 125 and a line that says so', async () => {
    const full = openSync('/dev/full', 'w')
    const child = spawn(process.execPath, [cliPath, ...args], { stdio: ['ignore', full, 'pipe'] })
    closeSync(full)
    let stderr = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    await once(child, 'close')
    expect({ code: child.exitCode, stderr }).toEqual({ code: 125, stderr: expect.stringMatching(/^glovebox: cannot write to stdout: ENOSPC.*\n$/) as unknown })
  })

  test('that nobody reads any more is 141, without a word', async () => {
    const child = startCli(args)
    child.stdin.end()
    child.stdout.destroy()
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    expect({ code: await exitCodeOf(child), stderr }).toEqual({ code: 141, stderr: '' })
  })
})

/** What a terminal is sent by a command line of ours; Ctrl-C is typed once `until` was seen. */
async function onTerminal(args: readonly string[], until?: string): Promise<{ readonly code: number | null; readonly screen: string }> {
  const words = [process.execPath, cliPath, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`)
  const child = spawn('script', ['-qefc', `exec ${words.join(' ')}`, '/dev/null'], { env: { ...process.env, NO_COLOR: '1' } })
  let screen = ''
  let isTyped = until === undefined
  child.stdout.on('data', (chunk: Buffer) => {
    screen += chunk.toString()
    if (isTyped || !screen.includes(until ?? '')) return
    isTyped = true
    child.stdin.write('\u0003')
  })
  await once(child, 'close')
  return { code: child.exitCode, screen }
}

describe('on a terminal', () => {
  test('a line of ours starts at the left although the program stopped in the middle of one', async () => {
    const { code, screen } = await onTerminal(['run', '-q', ...fake, '--timeout', '3s', '--', 'sh', '-c', 'printf half; sleep 60'])
    expect({ code, screen }).toEqual({ code: 124, screen: 'half\r\nglovebox: sh was stopped: it ran longer than 3 s (--timeout)\r\n' })
  })

  test('no empty line is put before it when the program ended its own', async () => {
    const { screen } = await onTerminal(['run', '-q', ...fake, '--timeout', '3s', '--', 'sh', '-c', 'echo whole; sleep 60'])
    expect(screen).toBe('whole\r\nglovebox: sh was stopped: it ran longer than 3 s (--timeout)\r\n')
  })

  test('a program that ends by itself gets nothing added to its half line', async () => {
    expect(await onTerminal(['run', '-q', ...fake, '--', 'printf', 'half'])).toEqual({ code: 0, screen: 'half' })
  })

  testUnless(!isBwrapReady && 'bwrap is not ready here: ./glovebox doctor')('Ctrl-C takes away what the demo was waiting for', async () => {
    const { code, screen } = await onTerminal(['demo'], '… Python')
    expect(code).toBe(130)
    expect(screen).toMatch(/\r\u001b\[K(?:\^C)?$/)
  })
})
