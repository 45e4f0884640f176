import { afterEach, describe, expect, test } from 'vitest'
import { fake, processesWith } from '../cli/cli.js'
import { RawPeer } from './connections.js'

const patience = 120_000
const peers: RawPeer[] = []

function connect(flags: readonly string[] = fake): RawPeer {
  const peer = new RawPeer(flags)
  peers.push(peer)
  return peer
}

afterEach(async () => {
  for (const peer of peers.splice(0)) {
    peer.child.kill('SIGKILL')
    await peer.ended()
  }
})

describe('a peer that does not keep to the protocol', { timeout: patience }, () => {
  test.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])('that is of %s is spoken to in its own words', async (version) => {
    const peer = connect()
    expect(await peer.initialize(version)).toMatchObject({ result: { protocolVersion: version, serverInfo: { name: 'glovebox' } } })
    peer.send({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    expect(await peer.answerTo(1)).toMatchObject({ result: { tools: expect.any(Array) } })
    expect(await peer.end()).toBe(0)
  })

  test('S-28 gets the errors that JSON-RPC has for it, and is served on', async () => {
    const peer = connect()
    await peer.initialize()
    peer.sendLine('{ this is no JSON')
    expect(await peer.answerTo(null)).toMatchObject({ error: { code: -32_700 } })
    peer.send(Array.from({ length: 100_000 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' })))
    expect(await peer.answerTo(null)).toMatchObject({ error: { code: -32_600 } })
    peer.send({ jsonrpc: '2.0', id: { no: 'id' }, method: 'ping' })
    expect(await peer.answerTo(null)).toMatchObject({ error: { code: -32_600 } })
    peer.send({ jsonrpc: '1.0', id: 5, method: 'ping' })
    expect(await peer.answerTo(5)).toMatchObject({ error: { code: -32_600 } })
    peer.send({ jsonrpc: '2.0', id: 6, method: 'no/such/method' })
    expect(await peer.answerTo(6)).toMatchObject({ error: { code: -32_601 } })
    peer.send({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'no_such_tool', arguments: {} } })
    expect(await peer.answerTo(7)).toMatchObject({ error: { code: -32_602 } })
    peer.send({ jsonrpc: '2.0', id: 'still', method: 'ping' })
    expect(await peer.answerTo('still')).toMatchObject({ result: {} })
  })

  test('may send a line of 16 MiB; one that is longer is passed over, whatever it holds', async () => {
    const peer = connect()
    await peer.initialize()
    const call = (id: number, content: string) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'write_file', arguments: { path: 'large.txt', content } },
    })
    peer.send(call(1, 'x'.repeat(16 << 20)))
    expect(await peer.answerTo(1)).toMatchObject({ result: { structuredContent: { size: 16 << 20 } } })
    peer.send(call(2, 'x'.repeat(25 << 20)))
    expect(await peer.answerTo(null)).toMatchObject({ error: { code: -32_600, message: expect.stringContaining('bytes') } })
    peer.send({ jsonrpc: '2.0', id: 3, method: 'ping' })
    expect(await peer.answerTo(3)).toMatchObject({ result: {} })
  })

  test('S-28 that asks without end is told to wait, and its first calls are served', async () => {
    const peer = connect()
    await peer.initialize()
    const count = 400
    for (let id = 0; id < count; id += 1)
      peer.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'run_command', arguments: { command: 'sleep 0.05' } } })
    const answers = await Promise.all(Array.from({ length: count }, (_, id) => peer.answerTo(id)))
    const isBusy = (answer: Record<string, unknown>): boolean =>
      JSON.stringify(answer).includes('busy') || (answer['error'] as { code?: number } | undefined)?.code === -32_000
    expect(answers.filter(isBusy).length).toBeGreaterThan(0)
    expect(answers.filter((answer) => !isBusy(answer)).length).toBeGreaterThan(100)
  })

  test('that uses an id again while it is under way is refused', async () => {
    const peer = connect()
    await peer.initialize()
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run_command', arguments: { command: 'sleep 0.5' } } }
    peer.send(call)
    peer.send(call)
    expect(await peer.answerTo(1)).toMatchObject({ error: { code: -32_600 } })
    expect(await peer.answerTo(1)).toMatchObject({ result: { structuredContent: { outcome: 'exited' } } })
  })
})

describe('the end of a connection', { timeout: patience }, () => {
  test.each([
    ['the end of its input', (peer: RawPeer) => peer.child.stdin.end(), [0]],
    ['SIGTERM', (peer: RawPeer) => peer.child.kill('SIGTERM'), [143]],
    ['SIGINT', (peer: RawPeer) => peer.child.kill('SIGINT'), [130]],
    ['a reader that is gone', (peer: RawPeer) => peer.child.stdout.destroy(), [0, 141]],
  ])('by %s leaves no program behind', async (name, end, codes) => {
    const marker = `37.${process.pid}${name.length}`
    const peer = connect()
    await peer.initialize()
    const command = `echo up; sleep ${marker}; true`
    peer.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run_command', arguments: { command }, _meta: { progressToken: 'p' } } })
    await peer.next((message) => message['method'] === 'notifications/progress')
    end(peer)
    // It notices a reader that is gone when it has something to say.
    if (name.startsWith('a reader')) peer.send({ jsonrpc: '2.0', id: 2, method: 'ping' })
    expect(codes).toContain(await peer.ended())
    expect(processesWith(`sleep ${marker}`)).toEqual([])
    expect(processesWith(marker)).toEqual([])
  })

  test('answers what was asked just before', async () => {
    const peer = connect()
    await peer.initialize()
    peer.send({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    peer.child.stdin.end()
    expect(await peer.answerTo(1)).toMatchObject({ result: { tools: expect.any(Array) } })
    expect(await peer.ended()).toBe(0)
  })
})
