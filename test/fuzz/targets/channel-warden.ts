import { Duplex } from 'node:stream'
import { connectWarden } from '../../../src/channel/client.js'
import { encodeFrame } from '../../../src/channel/frames.js'
import type { StartRequest } from '../../../src/channel/start-payload.js'
import { cut, type FuzzTarget, holds, isRefusal, u32 } from '../target.js'

const hello = encodeFrame('hello', {}, u32(4, 2 * 1024 * 1024))
const request: StartRequest = { argv: ['a'], env: {}, cwd: '/', uid: 1, gid: 1, capabilities: 0n, rlimits: [], stdin: true }
const told = encodeFrame('accepted', { run: 2 ** 31 + 1 }, Buffer.concat([Buffer.of(1, 4, 187, 1, 10, 0, 0, 1), Buffer.alloc(12), u32(32_768)]))
const exited = encodeFrame('exited', { run: 1 }, Buffer.alloc(48))
/** However little is read, what is sent in answer is little. */
const mostSent = 1 << 20

async function readAll(pieces: AsyncIterable<unknown>): Promise<void> {
  for await (const piece of pieces) holds(piece !== undefined, 'output is there')
}

/** The engine's end of the channel against a warden that sends what it likes: everything that waits is told an end, by an error of ours, and nothing is thrown elsewhere. */
export const target: FuzzTarget = {
  name: 'channel-warden',
  most: 2048,
  seeds: [
    Buffer.concat([
      encodeFrame('started', { run: 1 }, u32(7)),
      encodeFrame('output', { run: 1, stream: 1 }, Buffer.from('hello')),
      encodeFrame('output', { run: 1, stream: 1 }),
      exited,
    ]),
    Buffer.concat([
      encodeFrame('failed', { run: 1 }, Buffer.concat([u32(2, 2), Buffer.from('no')])),
      encodeFrame('connected', { run: 2 }),
      encodeFrame('closed', { run: 2 }, u32(0)),
    ]),
    Buffer.concat([told, encodeFrame('query', { run: 3 }, Buffer.alloc(20)), encodeFrame('gone', { run: 1 })]),
    encodeFrame('credit', { run: 1 }, u32(65_536)),
  ],
  async run(bytes) {
    let sent = 0
    const channel = new Duplex({
      read() {},
      write(chunk: Uint8Array, _, done) {
        sent += chunk.length
        done()
      },
    })
    const connecting = connectWarden(channel as never)
    channel.push(hello)
    const warden = await connecting
    warden.onConnection((connection) => void connection.destroy())
    warden.onQuery(() => Promise.resolve(undefined))
    const ends = [
      warden.start(request).then(async (result) => {
        if (!result.started) return
        const { process } = result
        await Promise.allSettled([readAll(process.output), process.write(Buffer.from('in')), process.exited, process.kill()])
      }),
      warden.connect(80).then((connection) => void connection.destroy()),
    ].map((end) => end.catch((error: unknown) => holds(isRefusal(error), `what waits is told by an error of ours, not ${String(error)}`)))
    for (const piece of cut(bytes)) channel.push(Buffer.from(piece))
    channel.push(null)
    const why = await warden.ended
    holds(why === undefined || isRefusal(why), 'the end of the channel is an error of ours')
    await Promise.all(ends)
    holds(sent < mostSent, 'what is sent is little')
  },
}
