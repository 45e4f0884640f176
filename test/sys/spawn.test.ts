import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { capture, spawnProcess } from '../../src/sys/spawn.js'

test('arguments are never read by a shell', async () => {
  const { stdout } = await capture(['/usr/bin/printf', '%s\n', '$(id)', ';', '-x', ''])
  expect(stdout.toString()).toBe('$(id)\n;\n-x\n\n')
})

test('the environment is exactly what is given', async () => {
  expect((await capture(['/usr/bin/env'])).stdout.toString()).toBe('')
  expect((await capture(['/usr/bin/env'], { env: { A: '1' } })).stdout.toString()).toBe('A=1\n')
})

test('a program that takes too long is killed', async () => {
  expect((await capture(['/bin/sleep', '100'], { timeoutMs: 50 })).code).toBeNull()
})

test('one that takes too long is killed in its time, whoever else holds its output open', async () => {
  const startedAt = performance.now()
  expect(await capture(['/bin/sh', '-c', 'echo said; sleep 5 & wait'], { timeoutMs: 300 })).toMatchObject({ code: null, stderr: '' })
  expect(performance.now() - startedAt).toBeLessThan(4000)
})

test('a program that is not there is unavailable', async () => {
  await expect(spawnProcess(['/nowhere/program'], { env: {} })).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('/nowhere/program') as string,
  })
})

test('the channel is stdin and stdout, and the last words are complete when the end is told', async () => {
  const process = await spawnProcess(['/bin/sh', '-c', 'cat; seq 1 100000 >&2; echo last >&2; exit 3'], { env: { PATH: '/usr/bin:/bin' } })
  process.channel.end('hello')
  expect(await text(process.channel)).toBe('hello')
  expect(await process.wait()).toEqual({ code: 3, signal: null })
  expect(process.diagnosis().split('\n').at(-1)).toBe('last')
  expect(process.diagnosis().length).toBeLessThanOrEqual(4096)
})
