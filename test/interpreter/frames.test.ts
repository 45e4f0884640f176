import { expect, test } from 'vitest'
import { encodeRequest, KernelFault, ReplyDecoder, type ReplyFrame } from '../../src/interpreter/frames.js'
import { parseAsk, parseDone, parseReady, parseResult } from '../../src/interpreter/replies.js'

const token = '0123456789abcdef0123456789abcdef'
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const json = (value: unknown): Uint8Array => bytes(JSON.stringify(value))
const frame = (head: string, payload = ''): string => `${head} ${Buffer.byteLength(payload)}\n${payload}`

function decode(pieces: readonly Uint8Array[]): ReplyFrame[] {
  const decoder = new ReplyDecoder()
  const frames = pieces.flatMap((piece) => [...decoder.push(piece)])
  decoder.end()
  return frames
}

test('frames come out the same wherever the bytes are cut', () => {
  const stream = bytes(frame('ready -', '{}') + frame(`result ${token}`, 'é'.repeat(50)) + frame(`done ${token}`))
  const whole = decode([stream])
  expect(whole.map(({ type, token: of, payload }) => [type, of, payload.length])).toEqual([
    ['ready', undefined, 2],
    ['result', token, 100],
    ['done', token, 0],
  ])
  for (let at = 1; at < stream.length; at += 1) expect(decode([stream.subarray(0, at), stream.subarray(at)])).toEqual(whole)
  expect(decode([...stream].map((byte) => Uint8Array.of(byte)))).toEqual(whole)
})

test.each([
  ['a type that there is not', frame(`hello ${token}`)],
  ['upper case', frame(`DONE ${token}`)],
  ['a token that is too short', frame('done 0123')],
  ['a token in upper case', frame(`done ${token.toUpperCase()}`)],
  ['no token where one is needed', frame('done -')],
  ['a token where none is meant', frame(`ready ${token}`)],
  ['a length that is none', `done ${token} x\n`],
  ['a length with a sign', `done ${token} -1\n`],
  ['a length with a zero before it', `done ${token} 01\n`],
  ['a length beyond the bound', `done ${token} 16777217\n`],
  ['a line without an end', 'a'.repeat(64)],
  ['a line that is too long', `${'a'.repeat(80)}\n`],
  ['an end amid a line', 'done'],
  ['an end amid a payload', `done ${token} 5\nab`],
  ['NUL', '\0\n'],
])('%s is a fault', (_, text) => {
  expect(() => decode([bytes(text)])).toThrow(KernelFault)
})

test('a request has its payload behind its line', () => {
  const payload = bytes('é\n\0')
  expect(Buffer.from(encodeRequest({ type: 'execute', token, payload })).toString()).toBe(`execute ${token} 4\né\n\0`)
  expect(Buffer.from(encodeRequest({ type: 'eof', token })).toString()).toBe(`eof ${token} 0\n`)
})

test('replies are what they say', () => {
  expect(parseReady(json({ language: 'python', version: '3.11.2' }))).toEqual({ language: 'python', version: '3.11.2' })
  expect(parseAsk(json({ mark: 2, prompt: '? ', secret: true }))).toEqual({ mark: 2, prompt: '? ', isSecret: true })
  expect(parseDone(json({ mark: 1, status: 'exit', number: 1, code: 3 }))).toEqual({ mark: 1, status: 'exit', code: 3 })
  const error = { name: 'E', value: 'v', traceback: 't', full: 'f', line: 3 }
  expect(parseDone(json({ mark: 1, status: 'error', number: 1, error })).error).toEqual({ name: 'E', value: 'v', traceback: 't', fullTraceback: 'f', line: 3 })
  expect(parseResult(json({ mark: 1, main: true, data: { 'text/plain': '1', 'application/json': [1] }, cut: ['text/html'] }))).toEqual({
    mark: 1,
    result: { isMain: true, data: { 'text/plain': '1', 'application/json': [1] }, cut: ['text/html'] },
    extraBytes: 64,
  })
})

const data = { 'text/plain': '1' }
test.each([
  ['no JSON', () => parseDone(bytes('{'))],
  ['no object', () => parseDone(json([]))],
  ['bytes that are no UTF-8', () => parseDone(Uint8Array.of(0x22, 0xff, 0x22))],
  ['a NUL', () => parseReady(bytes('{"language":"p","version":"\0"}'))],
  ['no mark', () => parseResult(json({ main: true, data }))],
  ['mark 0', () => parseResult(json({ mark: 0, main: true, data }))],
  ['a mark that is no number', () => parseResult(json({ mark: '1', main: true, data }))],
  ['no text/plain', () => parseResult(json({ mark: 1, main: true, data: {} }))],
  ['a status that there is not', () => parseDone(json({ mark: 1, status: 'good', number: 1 }))],
  ['an error without one', () => parseDone(json({ mark: 1, status: 'error', number: 1 }))],
  ['an error with success', () => parseDone(json({ mark: 1, status: 'ok', number: 1, error: {} }))],
  ['an error without a traceback', () => parseDone(json({ mark: 1, status: 'error', number: 1, error: { name: 'E', value: 'v' } }))],
  ['a prompt that is none', () => parseAsk(json({ mark: 1, prompt: 1 }))],
])('a reply with %s is a fault', (_, parse) => {
  expect(parse).toThrow(KernelFault)
})

test('a form that is not what its type says is left out and told, and one with a name that is no type is left out', () => {
  let deep: unknown = 1
  for (let level = 0; level < 3000; level += 1) deep = [deep]
  const forms = {
    'text/plain': '1',
    'text/html': 5,
    'image/png': 'not base64!',
    'image/jpeg': 'AAAA',
    'application/json': deep,
    'no type': 'x',
    __proto__x: 'x',
  }
  const { result } = parseResult(json({ mark: 1, main: false, data: forms }))
  expect(result).toEqual({ isMain: false, data: { 'text/plain': '1', 'image/jpeg': 'AAAA' }, cut: ['text/html', 'image/png', 'application/json'] })
})

test('what a value of many small objects takes is counted, and one of too many is left out', () => {
  const records = (count: number): unknown => ({
    mark: 1,
    main: true,
    data: { 'text/plain': '', 'application/json': Array.from({ length: count }, () => ({})) },
  })
  expect(parseResult(json(records(1000))).extraBytes).toBe(1001 * 64)
  const { result, extraBytes } = parseResult(json(records(1_000_000)))
  expect({ result, extraBytes }).toEqual({ result: { isMain: true, data: { 'text/plain': '' }, cut: ['application/json'] }, extraBytes: 0 })
})
