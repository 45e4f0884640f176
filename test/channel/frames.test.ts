import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  encodeFrame,
  type Frame,
  FrameDecoder,
  type FrameRule,
  frameRules,
  frameTypes,
  headerBytes,
  type Side,
  type StreamNumber,
} from '../../src/channel/frames.js'
import { SandboxError } from '../../src/contract/errors.js'

interface Sent {
  readonly name: Frame['name']
  readonly stream: StreamNumber
  readonly run: number
  readonly payload: Buffer
}

const sides = fc.constantFrom<Side>('engine', 'warden')

function frameOf(rule: FrameRule): fc.Arbitrary<Sent> {
  const unit = rule.unit ?? 1
  const most = Math.floor(Math.min(rule.most, 3000) / unit)
  return fc.record({
    name: fc.constant(rule.name),
    stream: rule.ofStream ? fc.constantFrom<StreamNumber>(1, 2, 3) : fc.constant<StreamNumber>(0),
    run: rule.ofRun ? fc.integer({ min: 1, max: 0xffffffff }) : fc.constant(0),
    payload: fc
      .tuple(fc.integer({ min: Math.ceil(rule.least / unit), max: most }), fc.integer({ min: 0, max: 255 }))
      .map(([units, seed]) => Buffer.from(Array.from({ length: units * unit }, (_, index) => (seed + index * 7) & 255))),
  })
}

function conversation(side: Side): fc.Arbitrary<Sent[]> {
  return fc.array(fc.oneof(...frameRules[side].map(frameOf)), { maxLength: 20 })
}

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = []
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const size = sizes.length === 0 ? bytes.length : (sizes[index % sizes.length] as number)
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  return chunks
}

function decodeAll(from: Side, chunks: readonly Uint8Array[]): { readonly frames: Sent[]; readonly decoder: FrameDecoder } {
  const frames: Sent[] = []
  let pieces: Buffer[] = []
  const decoder = new FrameDecoder({
    from,
    onFrame: ({ name, stream, run, payload, rest }) => {
      // An empty piece is the end of a stream, so only an empty frame may give one.
      if (payload.length === 0) expect([pieces.length, rest]).toEqual([0, 0])
      pieces.push(Buffer.from(payload))
      if (rest > 0) return
      frames.push({ name, stream, run, payload: Buffer.concat(pieces) })
      pieces = []
    },
  })
  for (const chunk of chunks) decoder.push(chunk)
  return { frames, decoder }
}

function header(fields: Partial<{ length: number; type: number; stream: number; reserved: number; run: number }>): Buffer {
  const bytes = Buffer.alloc(headerBytes)
  bytes.writeUInt32LE(fields.length ?? 0, 0)
  bytes[4] = fields.type ?? frameTypes.gone
  bytes[5] = fields.stream ?? 0
  bytes.writeUInt16LE(fields.reserved ?? 0, 6)
  bytes.writeUInt32LE(fields.run ?? 1, 8)
  return bytes
}

describe('frames', () => {
  it('come out as they went in, however the bytes are cut', () => {
    fc.assert(
      fc.property(
        sides.chain((side) => fc.tuple(fc.constant(side), conversation(side))),
        fc.array(fc.integer({ min: 1, max: 700 }), { maxLength: 12 }),
        ([side, sent], sizes) => {
          const bytes = Buffer.concat(sent.map((frame) => encodeFrame(frame.name, frame, frame.payload)))
          const { frames, decoder } = decodeAll(side, cut(bytes, sizes))
          expect(frames).toEqual(sent)
          expect(decoder.isInsideFrame).toBe(false)
        },
      ),
    )
  })

  it('come out as they went in when every byte arrives alone', () => {
    const sent: Sent[] = [
      { name: 'hello', stream: 0, run: 0, payload: Buffer.from('12345678') },
      { name: 'output', stream: 2, run: 3, payload: Buffer.from('abc') },
      { name: 'output', stream: 1, run: 3, payload: Buffer.alloc(0) },
      { name: 'gone', stream: 0, run: 3, payload: Buffer.alloc(0) },
    ]
    const bytes = Buffer.concat(sent.map((frame) => encodeFrame(frame.name, frame, frame.payload)))
    expect(decodeAll('warden', cut(bytes, [1])).frames).toEqual(sent)
  })

  it('of the largest sizes pass, and one byte more is refused', () => {
    for (const side of ['engine', 'warden'] as const) {
      for (const rule of frameRules[side]) {
        const address = { run: rule.ofRun ? 1 : 0, stream: rule.ofStream ? 1 : 0 } as const
        const largest = encodeFrame(rule.name, address, Buffer.alloc(rule.most))
        expect(decodeAll(side, [largest]).frames[0]?.payload.length).toBe(rule.most)
        expect(() => decodeAll(side, [encodeFrame(rule.name, address, Buffer.alloc(rule.most + 1))])).toThrow(SandboxError)
      }
    }
  })

  it('that break a rule of the header are refused before their payload is read', () => {
    const wrong = {
      'unknown type': header({ type: 0x66 }),
      'type of the other side': header({ type: frameTypes.kill }),
      'length below the least': header({ type: frameTypes.started, length: 3 }),
      'length above the most': header({ type: frameTypes.output, stream: 1, length: 262_145 }),
      'length of 4 GiB': header({ type: frameTypes.fatal, run: 0, length: 0xffffffff }),
      'stream where none is': header({ stream: 1 }),
      'output for no stream': header({ type: frameTypes.output }),
      'output for stream 4': header({ type: frameTypes.output, stream: 4 }),
      'credit for the input on stream 3': header({ type: frameTypes.credit, stream: 3, length: 4 }),
      'reserved field': header({ reserved: 0x100 }),
      'no run where one is meant': header({ run: 0 }),
      'run where none is meant': header({ type: frameTypes.fatal, run: 1 }),
    }
    for (const [why, bytes] of Object.entries(wrong)) {
      expect(() => decodeAll('warden', [bytes]), why).toThrow(expect.objectContaining({ name: 'SandboxError', code: 'broken' }))
      expect(() => decodeAll('warden', cut(bytes, [5])), `${why}, in pieces`).toThrow(expect.objectContaining({ code: 'broken' }))
    }
  })

  it('from random bytes: nothing but SandboxError is thrown, and nothing is handed over that the rules do not allow', () => {
    const noise = fc.oneof(
      fc.uint8Array({ maxLength: 400 }),
      fc
        .tuple(fc.constantFrom(...Object.values(frameTypes)), fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 3 }))
        .map(([type, length, stream, run]) => new Uint8Array(Buffer.concat([header({ type, length, stream, run }), Buffer.alloc(length)]))),
    )
    fc.assert(
      fc.property(sides, fc.array(noise, { maxLength: 8 }), (side, chunks) => {
        try {
          for (const frame of decodeAll(side, chunks).frames) {
            const rule = frameRules[side].find((each) => each.name === frame.name)
            expect(rule).toBeDefined()
            expect(frame.payload.length).toBeLessThanOrEqual(rule?.most ?? -1)
            expect(frame.run > 0).toBe(rule?.ofRun)
          }
        } catch (error) {
          expect(error).toBeInstanceOf(SandboxError)
          expect((error as SandboxError).code).toBe('broken')
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('that carry output are handed over as views of what arrived, and hold nothing back', () => {
    const handed: Uint8Array[] = []
    const decoder = new FrameDecoder({ from: 'warden', onFrame: ({ payload }) => handed.push(payload) })
    const bytes = new Uint8Array(encodeFrame('output', { run: 1, stream: 1 }, Buffer.alloc(60_000, 1)))
    const first = bytes.slice(0, 30_000)
    decoder.push(first)
    expect(handed.map((each) => [each.length, each.buffer === first.buffer])).toEqual([[30_000 - headerBytes, true]])
  })
})
