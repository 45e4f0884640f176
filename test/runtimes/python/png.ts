// As much of a PNG decoder as it takes to see that a picture shows something.
import { inflateSync } from 'node:zlib'

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const channelsOf: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }

export interface Picture {
  readonly width: number
  readonly height: number
  readonly colours: number
}

/** Throws when it is not a whole PNG of eight bits a channel. */
export function decodePng(bytes: Buffer): Picture {
  if (!bytes.subarray(0, 8).equals(signature)) throw new Error('not a PNG')
  const data: Buffer[] = []
  let header: Buffer | undefined
  let hasEnd = false
  for (let at = 8; at + 12 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at)
    const type = bytes.toString('latin1', at + 4, at + 8)
    const content = bytes.subarray(at + 8, at + 8 + length)
    if (type === 'IHDR') header = content
    if (type === 'IDAT') data.push(content)
    if (type === 'IEND') hasEnd = true
    at += 12 + length
  }
  if (!header || !hasEnd) throw new Error('a PNG without its beginning or end')
  const [width, height, depth, kind] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9] as number]
  const channels = channelsOf[kind]
  if (depth !== 8 || channels === undefined) throw new Error(`a PNG of depth ${depth} and type ${kind}`)
  const rows = unfiltered(inflateSync(Buffer.concat(data)), { width: width * channels, height, channels })
  const colours = new Set<string>()
  for (let at = 0; at < rows.length; at += channels) colours.add(rows.toString('latin1', at, at + channels))
  return { width, height, colours: colours.size }
}

function unfiltered(raw: Buffer, { width, height, channels }: { width: number; height: number; channels: number }): Buffer {
  if (raw.length !== (width + 1) * height) throw new Error('a PNG with too few or too many bytes')
  const out = Buffer.alloc(width * height)
  for (let row = 0; row < height; row++) {
    const filter = raw[row * (width + 1)] as number
    for (let column = 0; column < width; column++) {
      const at = row * width + column
      const left = column >= channels ? (out[at - channels] as number) : 0
      const up = row > 0 ? (out[at - width] as number) : 0
      const corner = row > 0 && column >= channels ? (out[at - width - channels] as number) : 0
      out[at] = (raw[row * (width + 1) + 1 + column] as number) + predicted(filter, { left, up, corner })
    }
  }
  return out
}

function predicted(filter: number, { left, up, corner }: { left: number; up: number; corner: number }): number {
  if (filter === 0) return 0
  if (filter === 1) return left
  if (filter === 2) return up
  if (filter === 3) return (left + up) >> 1
  if (filter !== 4) throw new Error(`a PNG with filter ${filter}`)
  const guess = left + up - corner
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)]
  return a <= b && a <= c ? left : b <= c ? up : corner
}
