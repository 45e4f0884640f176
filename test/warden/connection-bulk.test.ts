import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { encode, Peer, TYPE, WINDOW } from './frames.js'

const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

interface Reached extends AsyncDisposable {
  readonly socket: Socket
  readonly heard: Buffer[]
}

/** Run 1 is a connection to a listener of ours, which has not read anything yet. */
async function reach(peer: Peer): Promise<Reached> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const connected = once(server, 'connection') as Promise<[Socket]>
  const payload = Buffer.alloc(2)
  payload.writeUInt16LE((server.address() as AddressInfo).port)
  peer.send({ type: TYPE.CONNECT, run: 1, payload })
  await peer.takeType(TYPE.CONNECTED, 1)
  const [socket] = await connected
  const heard: Buffer[] = []
  socket.on('error', () => {})
  return {
    socket,
    heard,
    [Symbol.asyncDispose]: async () => {
      socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function listenTo({ socket, heard }: Reached): void {
  socket.on('data', (chunk: Buffer) => heard.push(chunk))
  socket.resume()
}

test('what has come of a long STDIN goes on before the rest of it, and the rest follows exactly', async () => {
  await using peer = new Peer()
  await using reached = await reach(peer)
  listenTo(reached)
  const noise = randomBytes(262_144)
  const frame = encode({ type: TYPE.STDIN, run: 1, payload: noise })
  const cuts = [0, 5, 12, 12 + 16_383, 12 + 16_384, 100_000, 200_001, frame.length - 1, frame.length]
  for (const [index, to] of cuts.slice(1).entries()) {
    peer.stdin.write(frame.subarray(cuts[index], to))
    const due = to >= 12 + 16_384 && to - (cuts[index] as number) > 16_384 ? to - 12 : 0
    await expect.poll(() => reached.heard.reduce((sum, chunk) => sum + chunk.length, 0)).toBeGreaterThanOrEqual(due)
    await pause(20)
  }
  peer.send({ type: TYPE.STDIN, run: 1 })
  await once(reached.socket, 'end')
  expect(digest(Buffer.concat(reached.heard))).toBe(digest(noise))
})

test('a STDIN beyond the credit ends the cell also where only its beginning has come at first', async () => {
  await using peer = new Peer()
  await using _reached = await reach(peer)
  const piece = Buffer.alloc(262_144, 7)
  // Until nobody takes any more: neither the listener, nor the kernel, nor the warden.
  for (let credit = WINDOW; credit >= piece.length; ) {
    credit -= piece.length
    peer.send({ type: TYPE.STDIN, run: 1, payload: piece })
    if (credit < piece.length) await pause(300)
    for (const given of peer.frames.filter(({ type }) => type === TYPE.CREDIT).splice(0)) {
      peer.frames.splice(peer.frames.indexOf(given), 1)
      credit += given.payload.readUInt32LE(0)
    }
  }
  peer.stdin.write(encode({ type: TYPE.STDIN, run: 1, payload: piece }).subarray(0, 100_000))
  await pause(50)
  peer.stdin.write(encode({ type: TYPE.STDIN, run: 1, payload: piece }).subarray(100_000))
  const { payload } = await peer.takeType(TYPE.FATAL)
  expect(payload.toString()).toBe('input beyond its credit')
})

test('whatever the sizes are and however it is read, all of it arrives in order', async () => {
  await using peer = new Peer()
  await using reached = await reach(peer)
  const sizes = [1, 262_144, 3, 65_536, 16_384, 200_000, 7, 100_001, 131_072]
  const sent = createHash('sha256')
  const received = createHash('sha256')
  let credit = WINDOW
  reached.socket.on('data', (chunk: Buffer) => received.update(chunk))
  // Read in fits and starts, so that what waits grows, shrinks, goes round and is gone, again and again.
  const reading = (async () => {
    while (!reached.socket.readableEnded) {
      reached.socket.resume()
      await pause(Math.random() * 6)
      reached.socket.pause()
      await pause(Math.random() * 12)
      if (reached.socket.readableLength === 0 && reached.socket.readableEnded) break
    }
  })()
  for (let turn = 0; turn < 400; turn += 1) {
    const piece = randomBytes(sizes[turn % sizes.length] as number)
    while (credit < piece.length) credit += (await peer.takeType(TYPE.CREDIT, 1)).payload.readUInt32LE(0)
    credit -= piece.length
    sent.update(piece)
    peer.send({ type: TYPE.STDIN, run: 1, payload: piece })
  }
  peer.send({ type: TYPE.STDIN, run: 1 })
  await reading
  expect(received.digest('hex')).toBe(sent.digest('hex'))
})
