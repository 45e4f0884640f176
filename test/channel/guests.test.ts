import { describe, expect, it } from 'vitest'
import type { GuestConnection } from '../../src/contract/egress.js'
import { encodeFrame, encodeNumberFrame, guestWindows } from '../../src/channel/frames.js'
import { connected, type ScriptedWarden, settle } from './scripted-warden.js'

const first = 2 ** 31
const [guestWindowBytes, narrow] = guestWindows
const broken: unknown = expect.objectContaining({ name: 'SandboxError', code: 'broken' })

interface Place {
  readonly door?: number
  readonly family?: number
  readonly port?: number
  readonly address?: readonly number[]
  readonly window?: number
}

function placed({ door = 2, family = 4, port = 443, address = [203, 0, 113, 9], window = guestWindowBytes }: Place = {}): Buffer {
  const payload = Buffer.alloc(24)
  payload.set([door, family, port & 255, port >> 8, ...address])
  payload.writeUInt32LE(window, 20)
  return payload
}

const accept = (peer: ScriptedWarden, run = first, place: Place = {}): void => peer.send('accepted', { run }, placed(place))

/** A connection that the scripted warden says it took in. */
async function taken(place?: Place): Promise<{ peer: ScriptedWarden; connection: GuestConnection; ended: Promise<unknown> }> {
  const { peer, warden } = await connected()
  const took = new Promise<GuestConnection>((resolve) => warden.onConnection(resolve))
  accept(peer, first, place)
  return { peer, connection: await took, ended: warden.ended }
}

describe("a guest's connection", () => {
  it.each([
    ['a proxy', { door: 1, port: 3128, address: [127, 0, 0, 1] }, { door: 'proxy', address: '127.0.0.1', port: 3128 }],
    ['an address', {}, { door: 'direct', address: '203.0.113.9', port: 443 }],
    [
      'an address of the sixth kind',
      { family: 6, port: 65_535, address: [0x20, 1, 0xd, 0xb8, ...new Array(11).fill(0), 7] as number[] },
      { door: 'direct', address: '2001:db8:0:0:0:0:0:7', port: 65_535 },
    ],
  ])('to %s says where it was meant to go', async (_, place, expected) => {
    const { connection } = await taken(place)
    expect({ door: connection.door, address: connection.address, port: connection.port }).toEqual(expected)
  })

  it('carries bytes both ways and ends in order', async () => {
    const { peer, connection } = await taken()
    peer.output(first, Buffer.from('question'))
    peer.send('output', { run: first, stream: 1 })
    const parts: string[] = []
    for await (const bytes of connection.output) parts.push(Buffer.from(bytes).toString())
    await connection.write(Buffer.from('answer'))
    await connection.end()
    expect([parts, (await peer.hear('stdin')).payload.toString(), (await peer.hear('stdin')).payload.length]).toEqual([['question'], 'answer', 0])
    peer.sendRaw(encodeNumberFrame('closed', { run: first }, 0))
    await connection.closed
  })

  it('is given back in halves of its window', async () => {
    const { peer, connection } = await taken({ window: narrow })
    const reading = connection.output[Symbol.asyncIterator]()
    peer.output(first, Buffer.alloc(narrow / 2))
    await reading.next()
    expect((await peer.hear('credit')).payload.readUInt32LE()).toBe(narrow / 2)
  })

  it('is ended at once when nobody takes it', async () => {
    const { peer } = await connected()
    accept(peer)
    expect((await peer.hear('kill')).run).toBe(first)
  })

  it('that broke off fails whoever reads, writes or waits', async () => {
    const { peer, connection } = await taken()
    peer.sendRaw(encodeNumberFrame('closed', { run: first }, 104))
    await expect(connection.closed).rejects.toMatchObject({ code: 'conflict' })
    await expect(connection.write(Buffer.from('x'))).rejects.toMatchObject({ code: 'conflict' })
    await connection.destroy()
  })

  it('can be destroyed, which makes room for another', async () => {
    const { peer, warden } = await connected()
    warden.onConnection((connection) => void connection.destroy())
    for (let each = 0; each < 600; each += 1) {
      accept(peer, first + each)
      await peer.hear('kill')
      peer.sendRaw(encodeNumberFrame('closed', { run: first + each }, 103))
      peer.send('gone', { run: first + each })
      await settle()
    }
    expect(await Promise.race([warden.ended, Promise.resolve('open')])).toBe('open')
  })
})

describe('two hundred and fifty-six connections', () => {
  it('make room for another with the very frame that ends one', async () => {
    const { peer, warden } = await connected()
    const connections: GuestConnection[] = []
    warden.onConnection((connection) => void connections.push(connection))
    for (let each = 0; each < 256; each += 1) accept(peer, first + each)
    await settle()
    peer.sendRaw(Buffer.concat([encodeNumberFrame('closed', { run: first }, 104), encodeFrame('accepted', { run: first + 256 }, placed())]))
    await settle()
    expect([connections.length, await Promise.race([warden.ended, Promise.resolve('open')])]).toEqual([257, 'open'])
  })
})

describe('a question', () => {
  it('is answered with what is found, by its number', async () => {
    const { peer, warden } = await connected()
    warden.onQuery((query) => Promise.resolve(Buffer.concat([query, Buffer.from('!')])))
    peer.send('query', { run: first }, Buffer.from('who'))
    expect(await peer.hear('answer')).toMatchObject({ run: first, payload: Buffer.from('who!') })
  })

  it.each([
    ['nobody answers', undefined],
    ['there is no answer', () => Promise.resolve(undefined)],
    ['the answer fails', () => Promise.reject(new Error('no'))],
    ['the answer is too long', () => Promise.resolve(Buffer.alloc(4097))],
  ] as const)('is given an empty answer when %s', async (_, answer) => {
    const { peer, warden } = await connected()
    if (answer) warden.onQuery(answer)
    peer.send('query', { run: first }, Buffer.from('who'))
    expect((await peer.hear('answer')).payload).toHaveLength(0)
  })
})

describe('listening', () => {
  it('says each port once', async () => {
    const { peer, warden } = await connected()
    warden.listen([443, 80, 443])
    expect((await peer.hear('listen')).payload).toEqual(Buffer.from([0xbb, 1, 80, 0]))
  })

  it.each([[[0]], [[65_536]], [[1.5]], [Array.from({ length: 65 }, (_, index) => index + 1)]])('at %j is refused before anything is sent', async (ports) => {
    const { peer, warden } = await connected()
    expect(() => warden.listen(ports)).toThrow(expect.objectContaining({ code: 'invalid' }))
    await settle()
    expect(peer.heard('listen')).toEqual([])
  })
})

/** Each breaks one rule towards an engine that has taken one connection in. */
const breaches: Record<string, (peer: ScriptedWarden) => void> = {
  'a number that it has given before': (peer) => accept(peer, first),
  'a number of the engine': (peer) => accept(peer, 7),
  'a question with a number of the engine': (peer) => peer.send('query', { run: 7 }, Buffer.from('who')),
  'an unknown door': (peer) => accept(peer, first + 1, { door: 3 }),
  'an unknown family': (peer) => accept(peer, first + 1, { family: 5 }),
  'port 0': (peer) => accept(peer, first + 1, { port: 0 }),
  'a window that is none': (peer) => accept(peer, first + 1, { window: 65_536 }),
  'CONNECTED for it': (peer) => peer.send('connected', { run: first }),
  'STARTED for it': (peer) => peer.started(first),
  // The first of it is read, and so given back.
  'more output than its window': (peer) => peer.output(first, Buffer.alloc(guestWindowBytes * 2 + 1)),
  'more credit than its window': (peer) => peer.sendRaw(encodeNumberFrame('credit', { run: first }, 1)),
  'its end before both directions ended': (peer) => peer.sendRaw(encodeNumberFrame('closed', { run: first }, 0)),
  'more connections than there is room for': (peer) => {
    for (let each = 1; each <= 256; each += 1) accept(peer, first + each)
  },
  'more questions than there is room for': (peer) => {
    for (let each = 1; each <= 65; each += 1) peer.send('query', { run: first + each }, Buffer.from('who'))
  },
}

describe('a warden that lies about guests ends the channel:', () => {
  it.each(Object.entries(breaches))('%s', async (_, breach) => {
    const { peer, connection, ended } = await taken()
    const reading = connection.output[Symbol.asyncIterator]().next()
    breach(peer)
    expect(await ended).toEqual(broken)
    await expect(Promise.all([reading, connection.closed])).rejects.toEqual(broken)
  })
})
