import { parseQuery } from '../../../src/egress/dns-message.js'
import { answerQuery, SyntheticNames } from '../../../src/egress/names.js'
import { type FuzzTarget, holds, isSame } from '../target.js'

const query = (labels: readonly string[], type = 1): Buffer =>
  Buffer.concat([
    Buffer.of(0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0),
    ...labels.map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)])),
    Buffer.of(0, 0, type, 0, 1),
  ])

/** Questions of DNS: an answer is for the question that was asked, is bounded, and tells addresses of known names alone. */
export const target: FuzzTarget = {
  name: 'egress-dns',
  most: 600,
  seeds: [
    query(['api', 'example', 'com']),
    query(['API', 'eXample', 'com'], 28),
    query([]),
    query(['a'.repeat(63), 'example', 'com'], 16),
    Buffer.concat([query(['x', 'test']), Buffer.of(0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0)]),
  ],
  run(bytes) {
    const parsed = parseQuery(bytes)
    if (parsed !== 'silence' && 'name' in parsed) {
      holds(parsed.name === parsed.name.toLowerCase() && parsed.name.length <= 255 && !/[\s\p{Cc}]/u.test(parsed.name), 'a name is one that can be written')
      holds(
        Buffer.from(bytes)
          .subarray(12, 12 + parsed.question.length)
          .equals(parsed.question),
        'a question is handed back as it was sent',
      )
    }
    const denied: string[] = []
    const answer = answerQuery(bytes, { names: new SyntheticNames(), isKnown: (name) => name.endsWith('example.com'), onDenied: (name) => denied.push(name) })
    if (answer === undefined) {
      isSame(parsed, 'silence', 'only what is no question gets no answer')
      return
    }
    holds(answer.length <= bytes.length + 28 && ((answer[2] ?? 0) & 0x80) !== 0, 'an answer is one, and little longer than its question')
    holds(answer[0] === bytes[0] && answer[1] === bytes[1], 'an answer has the number of its question')
    if (denied.length > 0) holds(((answer[6] ?? 0) << 8) + (answer[7] ?? 0) === 0, 'of a name that is not known no address is told')
  },
}
