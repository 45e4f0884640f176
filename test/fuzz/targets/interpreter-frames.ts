import { KernelFault, ReplyDecoder, type ReplyFrame } from '../../../src/interpreter/frames.js'
import { MarkScanner } from '../../../src/interpreter/marks.js'
import { parseAsk, parseDone, parseReady, parseResult } from '../../../src/interpreter/replies.js'
import { cut, type FuzzTarget, holds, unlessRefused } from '../target.js'

const token = 'ab'.repeat(16)
const frame = (type: string, payload: unknown, of = token): string => {
  const text = JSON.stringify(payload)
  return `${type} ${of} ${Buffer.byteLength(text)}\n${text}`
}
const isFault = (error: unknown): boolean => error instanceof KernelFault

function read(pieces: readonly Uint8Array[]): { readonly frames: ReplyFrame[]; readonly isWhole: boolean } {
  const frames: ReplyFrame[] = []
  const decoder = new ReplyDecoder()
  const isWhole = unlessRefused(() => {
    for (const piece of pieces) for (const each of decoder.push(piece)) frames.push(each)
    decoder.end()
    return true
  }, isFault)
  return { frames, isWhole: isWhole ?? false }
}

/** What is output, by its mark, of one stream. */
function stretches(pieces: readonly Uint8Array[]): string {
  const marks: number[] = []
  const scanner = new MarkScanner(token, (mark) => marks.push(mark))
  const found = [...pieces.flatMap((piece) => scanner.push(piece)), ...scanner.flush()]
  const byMark = new Map<number, string>()
  for (const { after, bytes } of found) byMark.set(after, (byMark.get(after) ?? '') + Buffer.from(bytes).toString('latin1'))
  return JSON.stringify([marks, ...byMark])
}

/** What a kernel replies and prints, which is a guest's word. */
export const target: FuzzTarget = {
  name: 'interpreter-frames',
  most: 800,
  seeds: [
    frame('ready', { language: 'python', version: '3.11' }, '-'),
    frame('result', {
      mark: 0,
      main: true,
      data: { 'text/plain': '42', 'text/html': '<b>', 'application/json': { a: [1] }, 'image/png': 'AAAA' },
      cut: ['a/b'],
    }),
    frame('ask', { mark: 1, prompt: 'name? ', secret: false }) + frame('done', { mark: 2, status: 'ok' }),
    frame('done', { mark: 1, status: 'error', error: { name: 'E', value: 'v', traceback: 't', fullTraceback: 'f', line: 1 } }),
    frame('done', { mark: 0, status: 'exit', code: 3 }),
    `out\x1e${token}:0\x1emore\x1e${token};1\x1e\x1e${token}:9\x1e`,
  ],
  run(bytes) {
    const whole = read([bytes])
    const parts = read(cut(bytes))
    const isAlike = parts.frames.every(({ type, token: of, payload }, index) => {
      const other = whole.frames[index]
      return other !== undefined && other.type === type && other.token === of && Buffer.compare(other.payload, payload) === 0
    })
    holds(isAlike && parts.frames.length === whole.frames.length && parts.isWhole === whole.isWhole, 'where bytes are cut changes nothing')
    for (const { type, payload } of whole.frames) {
      const parse = { ready: parseReady, result: parseResult, ask: parseAsk, done: parseDone }[type]
      const reply = unlessRefused(() => parse(payload), isFault)
      if (reply && 'extraBytes' in reply) holds(reply.extraBytes >= 0 && Object.keys(reply.result.data).length <= 64, 'a result is bounded')
      if (reply && 'mark' in reply) holds(Number.isSafeInteger(reply.mark) && reply.mark >= 0, 'a mark is a number')
    }
    holds(stretches(cut(bytes)) === stretches([bytes]), 'where output is cut changes nothing')
  },
}
