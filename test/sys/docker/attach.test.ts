import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type AttachedStreams, attachedStreams } from '../../../src/sys/docker/attach.js'

let folder: string
let server: Server
let engine: Socket
let streams: AttachedStreams

function piece(stream: number, bytes: Buffer): Buffer {
  const header = Buffer.alloc(8)
  header[0] = stream
  header.writeUInt32BE(bytes.length, 4)
  return Buffer.concat([header, bytes])
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-attach-'))
  const path = join(folder, 'socket')
  server = createServer({ allowHalfOpen: true }).listen(path)
  await once(server, 'listening')
  const connected = once(server, 'connection')
  const socket = connect({ path, allowHalfOpen: true })
  await once(socket, 'connect')
  engine = ((await connected) as [Socket])[0]
  streams = attachedStreams({ socket, head: piece(1, Buffer.from('head ')) })
})
afterEach(() => {
  engine.destroy()
  streams.stdin.destroy()
  server.close()
  rmSync(folder, { recursive: true })
})

describe('the streams of a container', () => {
  test('are taken apart wherever the pieces are cut', async () => {
    const said = Buffer.concat([piece(1, Buffer.from('out')), piece(2, Buffer.from('err')), piece(1, Buffer.alloc(0)), piece(1, Buffer.alloc(70_000, 'x'))])
    const [out, err] = [buffer(streams.stdout), text(streams.stderr)]
    for (let at = 0; at < 40; at += 1) {
      engine.write(said.subarray(at, at + 1))
      await new Promise((resolve) => void setImmediate(resolve))
    }
    engine.end(said.subarray(40))
    expect(await out).toEqual(Buffer.concat([Buffer.from('head out'), Buffer.alloc(70_000, 'x')]))
    expect(await err).toBe('err')
  })

  test('end in one direction without the other', async () => {
    const ended = once(engine, 'end')
    const heard = once(engine, 'data')
    streams.stdin.end('last words')
    expect(String((await heard)[0])).toBe('last words')
    await ended
    engine.end(piece(1, Buffer.from('answer')))
    expect(await text(streams.stdout)).toBe('head answer')
  })

  test('that nobody reads make the engine wait', async () => {
    streams.stderr.resume()
    const chunk = piece(1, Buffer.alloc(1 << 20, 'y'))
    let taken = 0
    const send = (): void => void engine.write(chunk, () => (taken += 1))
    for (let n = 0; n < 64; n += 1) send()
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(taken).toBeLessThan(8)
    expect(streams.stdout.readableLength).toBeLessThan(4 << 20)
    engine.end()
    expect((await buffer(streams.stdout)).length).toBe('head '.length + 64 * (1 << 20))
  })

  test.each([
    ['of a number that there is not', Buffer.from([7, 0, 0, 0, 0, 0, 0, 1])],
    ['of a length that nothing has', Buffer.from([1, 0, 0, 0, 255, 255, 255, 255])],
  ])('%s break the connection', async (_, bytes) => {
    const broken = once(streams.stdout, 'error')
    streams.stderr.on('error', () => undefined)
    streams.stdout.resume()
    engine.write(bytes)
    expect(String((await broken)[0])).toContain('sent a piece of a stream that begins with')
  })
})
