import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { cliPath, collect, exitCodeOf, fake, printed, processesWith, startCli } from './cli.js'

let marker = ''

beforeEach(() => {
  marker = `marker${randomBytes(6).toString('hex')}`
})

afterEach(() => {
  expect(processesWith(marker), 'processes that outlived the run').toEqual([])
})

const start = (script: string, flags: readonly string[] = []) => {
  const child = startCli(['run', '-q', ...fake, ...flags, '--', 'sh', '-c', script, marker])
  child.stdin.end()
  return child
}

describe('Ctrl-C', () => {
  test('once interrupts the program, whose own ending counts', async () => {
    const child = start("trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done")
    const result = collect(child)
    await printed(child, 'ready')
    child.kill('SIGINT')
    expect(await result).toMatchObject({ code: 5, stdout: 'ready\ncaught\n', stderr: '' })
  })

  test('once ends a program that does not mind it as 130, without a word', async () => {
    const child = start('echo ready; exec sleep 60')
    const result = collect(child)
    await printed(child, 'ready')
    child.kill('SIGINT')
    expect(await result).toMatchObject({ code: 130, stderr: '' })
  })

  test('twice kills a program that ignores it, with all it started', async () => {
    const child = start("trap 'echo ignored' INT; setsid sleep 61 & echo ready; while :; do sleep 0.05; done")
    const result = collect(child)
    await printed(child, 'ready')
    child.kill('SIGINT')
    await printed(child, 'ignored')
    child.kill('SIGINT')
    expect(await result).toMatchObject({ code: 137, stderr: 'glovebox: sh was killed: interrupted twice\n' })
  })
})

describe.each([
  ['SIGTERM', 143],
  ['SIGHUP', 129],
  ['SIGQUIT', 131],
] as const)('%s to the CLI', (signal, code) => {
  test('closes the sandbox, leaves nothing and is quiet', async () => {
    const child = start(`trap '' TERM HUP INT QUIT; setsid sh -c 'sleep 62' ${marker} & echo ready; while :; do sleep 0.05; done`)
    const result = collect(child)
    await printed(child, 'ready')
    child.kill(signal)
    expect(await result).toMatchObject({ code, stdout: 'ready\n', stderr: '' })
  })

  test('is told by the one object that --json asked for', async () => {
    const child = start('while :; do sleep 0.05; done', ['--json'])
    const result = collect(child)
    await expect.poll(() => processesWith(marker).length).toBeGreaterThan(1)
    child.kill(signal)
    expect(await result).toMatchObject({ code, stdout: `{"error":{"code":"closed","message":"stopped by ${signal}"}}\n`, stderr: '' })
  })

  test('is not held up by a reader that does not read', async () => {
    const child = start('echo ready; while :; do echo more; done', ['--output', '1g'])
    const ended = exitCodeOf(child)
    await once(child.stdout, 'readable')
    child.kill(signal)
    expect(await ended).toBe(code)
    child.stdout.destroy()
  })
})

test('SIGKILL to the CLI leaves no program', async () => {
  const child = start('echo ready; exec sleep 63')
  const result = collect(child)
  await printed(child, 'ready')
  child.kill('SIGKILL')
  await result
  await expect.poll(() => processesWith(marker)).toEqual([])
})

test('a reader that goes away ends the run quietly as 141', async () => {
  const child = start('while :; do echo line; done', ['--output', '1g'])
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
  })
  const ended = exitCodeOf(child)
  await once(child.stdout, 'data')
  child.stdout.destroy()
  expect({ code: await ended, stderr }).toEqual({ code: 141, stderr: '' })
})

test('a slow reader holds the program back instead of losing bytes', async () => {
  const child = start('head -c 3000000 /dev/zero')
  const ended = exitCodeOf(child)
  let total = 0
  for await (const chunk of child.stdout) {
    total += (chunk as Buffer).length
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  expect({ code: await ended, total }).toEqual({ code: 0, total: 3_000_000 })
})

test('the time limit fires although nobody reads', async () => {
  const child = start('while :; do echo more; done', ['--output', '1g', '--timeout', '500ms'])
  await once(child.stdout, 'readable')
  await expect.poll(() => processesWith(marker).filter((pid) => pid !== child.pid)).toEqual([])
  const result = collect(child)
  expect(await result).toMatchObject({ code: 124 })
})

test('Ctrl-C typed at a terminal reaches the program once, and the terminal is not its input', async () => {
  const script = "trap 'echo caught; exit 5' INT; echo input:$(cat); echo ready; while :; do sleep 0.05; done"
  const command = [process.execPath, cliPath, 'run', '-q', ...fake, '--', 'sh', '-c', script, marker].map((word) => `'${word.replaceAll("'", "'\\''")}'`)
  const child = spawn('script', ['-qefc', `exec ${command.join(' ')}`, '/dev/null'])
  const result = collect(child)
  await printed(child, 'ready')
  child.stdin.write('\u0003')
  const { code, stdout } = await result
  expect({ code, caught: stdout.split('caught').length - 1, input: stdout.includes('input:\r\n') }).toEqual({ code: 5, caught: 1, input: true })
})
