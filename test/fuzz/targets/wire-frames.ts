import { EventStream } from '../../../src/client/event-stream.js'
import { SandboxError } from '../../../src/contract/errors.js'
import { decodeGap, encodeFrame, FrameReader, fromBase64, frameTypes, toBase64 } from '../../../src/contract/wire/frames.js'
import { cut, type FuzzTarget, holds, isSame, laterIn, textIn, unlessRefused, unlessRefusedLater } from '../target.js'

/** Whoever reads says whose they are. */
const isNoFrame = (error: unknown): boolean => error instanceof Error && error.message === 'what came is no frame'

function read(pieces: readonly Uint8Array[]): unknown {
  const reader = new FrameReader()
  return unlessRefused(
    () => [...pieces.flatMap((piece) => [...reader.push(piece)].map(({ type, payload }) => [type, [...payload]])), reader.isWithin],
    isNoFrame,
  )
}

/** What a server answers to our client, which believes it nothing. */
export const target: FuzzTarget = {
  name: 'wire-frames',
  most: 1500,
  seeds: [
    encodeFrame(frameTypes.stdout, Buffer.from('hello')),
    Buffer.concat([encodeFrame(frameTypes.json, Buffer.from('{"type":"exit","code":0}')), encodeFrame(frameTypes.end, new Uint8Array())]),
    encodeFrame(frameTypes.json, Buffer.from('{"type":"error","error":{"code":"not-found","message":"no"}}')),
    encodeFrame(frameTypes.stdoutDropped, Buffer.alloc(12, 1)),
    'aGVsbG8=',
  ],
  async run(bytes) {
    const whole = read([bytes])
    const parts = read(cut(bytes))
    if (whole !== undefined && parts !== undefined) isSame(parts, whole, 'where bytes are cut changes nothing')
    const gap = unlessRefused(
      () => decodeGap(bytes),
      (error) => error instanceof Error && error.message === 'what came is no gap',
    )
    if (gap)
      holds(Number.isSafeInteger(gap.dropped) && gap.dropped >= 0 && gap.bytes.length === bytes.length - 8, 'a gap is a number of bytes, and what follows')
    const decoded = fromBase64(textIn(bytes))
    if (decoded) isSame(fromBase64(toBase64(decoded)), decoded, 'base64 that is written is read as it was')
    const stream = new EventStream({ status: 200, headers: {}, body: laterIn(cut(bytes)) } as never, { signal: undefined, onOver: () => undefined })
    await unlessRefusedLater(
      async () => {
        for (let count = 0; count <= bytes.length; count += 1) {
          const event = await stream.next()
          if (event === undefined) return
          holds(typeof event.type === 'string', 'an event has a type')
        }
        throw new Error('promise broken: more events than bytes')
      },
      (error) => error instanceof SandboxError,
    )
  },
}
