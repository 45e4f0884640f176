import { encodeFrame, frameTypes, headerBytes } from '../../../src/channel/frames.js'
import { encodeStart, type StartPayload } from '../../../src/channel/start-payload.js'
import { decodeStart } from '../../channel/start-reading.js'
import type { Cell, CellChannel } from '../../../src/contract/driver.js'

/** What is changed on the way from the engine to the warden. */
export interface Tampering {
  readonly start?: (payload: StartPayload) => StartPayload
  readonly filter?: Uint8Array
}

/** The same cell, whose warden hears something else than the engine said. */
export function tamperedCell(cell: Cell, tampering: Tampering): Cell {
  const channel = withOther(cell.channel, { write: tamperedWrite(cell.channel, tampering) })
  return withOther(cell, { channel })
}

/** All of an object but what is given; methods keep their object. */
export function withOther<T extends object>(whole: T, other: Partial<T>): T {
  return new Proxy(whole, {
    get: (target, name) => {
      if (Object.hasOwn(other, name)) return other[name as keyof T]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

function tamperedWrite(channel: CellChannel, tampering: Tampering): CellChannel['write'] {
  let held = Buffer.alloc(0)
  return (bytes, taken) => {
    held = Buffer.concat([held, bytes])
    const passed: Buffer[] = []
    for (let end = frameEnd(held); end !== undefined; end = frameEnd(held)) {
      passed.push(tamperedFrame(held.subarray(0, end), tampering))
      held = held.subarray(end)
    }
    return channel.write(Buffer.concat(passed), taken)
  }
}

function frameEnd(bytes: Buffer): number | undefined {
  const end = bytes.length < headerBytes ? Number.POSITIVE_INFINITY : headerBytes + bytes.readUInt32LE(0)
  return end <= bytes.length ? end : undefined
}

function tamperedFrame(frame: Buffer, { start, filter }: Tampering): Buffer {
  const run = frame.readUInt32LE(8)
  if (frame[4] === frameTypes.configure && filter) return encodeFrame('configure', {}, filter)
  if (frame[4] === frameTypes.start && start) return encodeFrame('start', { run }, encodeStart(start(decodeStart(frame.subarray(headerBytes)))))
  return frame
}
