/** DNS over TCP: the same questions and answers, each with its length before it. */
import type { Duplex } from 'node:stream'
import type { FrontParts } from './forward.js'
import { endWith, readSome } from './front-stream.js'
import type { Entrance } from './gate-types.js'

const mostQuestionBytes = 4096

export async function serveDns(stream: Duplex, { parts, entrance }: { readonly parts: FrontParts; readonly entrance: Entrance }): Promise<void> {
  let bytes = Buffer.alloc(0)
  try {
    for (;;) {
      const length = bytes.length < 2 ? undefined : bytes.readUInt16BE(0)
      if (length !== undefined && length > mostQuestionBytes) return
      if (length === undefined || bytes.length < 2 + length) {
        const more = await readSome(stream, entrance.signal)
        if (more === undefined) return
        bytes = Buffer.concat([bytes, more])
        continue
      }
      const answer = parts.gate.answer(bytes.subarray(2, 2 + length))
      bytes = bytes.subarray(2 + length)
      if (answer === undefined) return
      const head = Buffer.alloc(2)
      head.writeUInt16BE(answer.length)
      // Whoever does not take its answers asks no more.
      if (!stream.write(Buffer.concat([head, answer]))) return
    }
  } finally {
    endWith(stream)
  }
}
