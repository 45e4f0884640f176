import { parseReplyHeader } from '../../../src/channel/file-worker-frames.js'
import { parseDone, parseEntry, parseEvent, parseFailure, parseMatch, parseProcess } from '../../../src/channel/file-worker-replies.js'
import { type FuzzTarget, holds, u32, unlessRefused } from '../target.js'

const parsers = [parseEntry, parseEvent, parseMatch, parseProcess, parseDone, parseFailure]

/** What a file worker answers, which runs where a guest does. */
export const target: FuzzTarget = {
  name: 'file-worker-replies',
  most: 600,
  seeds: [
    Buffer.concat([u32(0, 0o644, 1000, 1000), Buffer.alloc(56), u32(1), Buffer.from('a'), u32(0)]),
    Buffer.concat([u32(1, 1), Buffer.from('a')]),
    Buffer.concat([u32(2), Buffer.from('no')]),
    Buffer.concat([u32(8), Buffer.of(0x83, 0, 0, 0)]),
    Buffer.alloc(16),
    Buffer.alloc(120),
  ],
  run(bytes) {
    const header = unlessRefused(() => parseReplyHeader(Buffer.concat([bytes, Buffer.alloc(8)]).subarray(0, 8)))
    if (header) holds(header.length <= 2 ** 20, 'no reply is longer than may be held')
    for (const parse of parsers) unlessRefused(() => void parse(bytes))
  },
}
