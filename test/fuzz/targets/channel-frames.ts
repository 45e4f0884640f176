import { encodeFrame, type Frame, FrameDecoder, headerBytes, type Side } from '../../../src/channel/frames.js'
import { cut, type FuzzTarget, holds, u32, unlessRefused } from '../target.js'

interface Read {
  readonly frames: { name: Frame['name']; stream: Frame['stream']; run: number; payload: Uint8Array[] }[]
  readonly isWhole: boolean
}

const written = ({ frames }: Read): Buffer =>
  Buffer.concat(frames.map(({ name, stream, run, payload }) => encodeFrame(name, { stream, run }, Buffer.concat(payload))))

/** Frames that flow are put together again. */
function read(from: Side, pieces: readonly Uint8Array[]): Read {
  const frames: Read['frames'] = []
  let isOpen = false
  const decoder = new FrameDecoder({
    from,
    onFrame: ({ name, stream, run, payload, rest }) => {
      holds(rest >= 0 && (payload.length > 0 || rest === 0), 'only a whole frame is empty')
      if (isOpen) frames.at(-1)?.payload.push(payload.slice())
      else frames.push({ name, stream, run, payload: [payload.slice()] })
      isOpen = rest > 0
    },
  })
  const isWhole = unlessRefused(() => pieces.forEach((piece) => decoder.push(piece)) ?? true) ?? false
  return { frames: isOpen ? frames.slice(0, -1) : frames, isWhole: isWhole && !decoder.isInsideFrame }
}

/** The frames of the protocol, whoever sends them: where they are cut changes nothing, and what was read is what was written. */
export const target: FuzzTarget = {
  name: 'channel-frames',
  most: 1024,
  seeds: [
    encodeFrame('hello', {}, u32(4, 2 * 1024 * 1024)),
    Buffer.concat([encodeFrame('started', { run: 1 }, u32(7)), encodeFrame('output', { run: 1, stream: 1 }, Buffer.from('hello'))]),
    encodeFrame('exited', { run: 1 }, Buffer.alloc(48)),
    Buffer.concat([encodeFrame('output', { run: 1, stream: 2 }, Buffer.alloc(300)), encodeFrame('gone', { run: 1 })]),
  ],
  run(bytes) {
    for (const side of ['warden', 'engine'] as const) {
      const whole = read(side, [bytes])
      const again = written(whole)
      const parts = read(side, cut(bytes))
      holds(parts.isWhole === whole.isWhole && written(parts).equals(again), 'where bytes are cut changes nothing')
      holds(again.equals(bytes.subarray(0, again.length)), 'what was read is what was written')
      if (whole.isWhole) holds(again.length === bytes.length, 'nothing is passed over')
      holds(whole.frames.length * headerBytes <= bytes.length, 'no frame is made up')
    }
  },
}
