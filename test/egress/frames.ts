/** Frames of HTTP/2 (RFC 9113) as bytes, for sides that break its rules: nothing is checked. */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

export const kinds = { data: 0, headers: 1, priority: 2, reset: 3, settings: 4, push: 5, ping: 6, goaway: 7, window: 8, continuation: 9 } as const
export const flags = { none: 0, endStream: 1, ack: 1, endHeaders: 4, priority: 0x20 } as const

export function frame(
  kind: keyof typeof kinds,
  { stream = 0, flag = 0, payload = Buffer.alloc(0) }: { stream?: number; flag?: number; payload?: Buffer } = {},
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = kinds[kind]
  head[4] = flag
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A number of HPACK with so many bits in its first byte. */
function integer(value: number, { bits, first = 0 }: { bits: number; first?: number }): Buffer {
  const most = 2 ** bits - 1
  if (value < most) return Buffer.of(first | value)
  const bytes = [first | most]
  let rest = value - most
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
  return Buffer.from([...bytes, rest])
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1')
  return Buffer.concat([integer(bytes.length, { bits: 7 }), bytes])
}

/** Written out, never kept in the table. */
export function block(headers: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(headers.map(([name, value]) => Buffer.concat([Buffer.of(0), text(name), text(value)])))
}

/** Kept in the table, and then named that many times by one byte each. */
export function bomb(name: string, value: string, times: number): Buffer {
  return Buffer.concat([Buffer.of(0x40), text(name), text(value), Buffer.alloc(times, 0x80 | 62)])
}

export function setting(id: number, value: number): Buffer {
  const bytes = Buffer.alloc(6)
  bytes.writeUInt16BE(id, 0)
  bytes.writeUInt32BE(value, 2)
  return bytes
}

export function request(stream: number, headers: readonly (readonly [string, string])[], { isOver = true }: { isOver?: boolean } = {}): Buffer {
  return frame('headers', { stream, flag: flags.endHeaders | (isOver ? flags.endStream : 0), payload: block(headers) })
}

export function number32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
