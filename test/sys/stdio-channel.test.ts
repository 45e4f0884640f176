import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { joinStdio } from '../../src/sys/stdio-channel.js'

describe('stdin and stdout as one stream', () => {
  it('carry bytes both ways, exactly, and end each other', async () => {
    const child = spawn('cat', { stdio: ['pipe', 'pipe', 'ignore'] })
    const channel = joinStdio(child)
    const bytes = Buffer.from(Array.from({ length: 1 << 20 }, (_, index) => (index * 131) & 255))
    const reading = buffer(channel)
    channel.cork()
    for (let at = 0; at < bytes.length; at += 10_000) channel.write(bytes.subarray(at, at + 10_000))
    channel.uncork()
    channel.end()
    expect((await reading).equals(bytes)).toBe(true)
  })

  it('hold the child back while nobody reads', async () => {
    const child = spawn('yes', { stdio: ['pipe', 'pipe', 'ignore'] })
    const channel = joinStdio(child)
    channel.pause()
    await once(channel, 'readable')
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(channel.readableLength).toBeLessThan(1 << 20)
    channel.destroy()
    await once(child, 'exit')
  })

  it.each([
    ['has ended', (stdout: PassThrough) => stdout.end().resume()],
    ['was broken off', (stdout: PassThrough) => stdout.destroy()],
  ])("end at once when the child's output %s before anyone listened", async (_, stop) => {
    const stdout = new PassThrough()
    const closed = once(stdout, 'close')
    stop(stdout)
    await closed
    const channel = joinStdio({ stdin: new PassThrough(), stdout })
    channel.resume()
    await Promise.race([once(channel, 'end'), once(channel, 'close')])
  })

  it('let a child that stopped reading say its last words', async () => {
    const child = spawn('sh', ['-c', 'exec <&-; sleep 0.2; echo last words'], { stdio: ['pipe', 'pipe', 'ignore'] })
    const channel = joinStdio(child)
    const reading = buffer(channel)
    await new Promise((resolve) => setTimeout(resolve, 100))
    for (let count = 0; count < 10; count += 1) channel.write(Buffer.alloc(100_000))
    expect((await reading).toString()).toBe('last words\n')
  })

  it('fail when the child stopped reading and says nothing either', async () => {
    const stdin = new PassThrough()
    const channel = joinStdio({ stdin, stdout: new PassThrough() })
    const failed = once(channel, 'error')
    stdin.destroy(new Error('broken pipe'))
    expect(((await failed)[0] as Error).message).toBe('broken pipe')
  })

  it('are both destroyed with it', async () => {
    const stdin = new PassThrough()
    const stdout = new PassThrough()
    joinStdio({ stdin, stdout }).destroy()
    await Promise.all([once(stdin, 'close'), once(stdout, 'close')])
  })
})
