import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { parseSocketCounts, readSocketCounts } from '../../../src/sys/posture/socket-counts.js'

test('counts what a namespace has, and leaves out what is no socket', () => {
  const text = `sockets: used 16
TCP: inuse 3 orphan 1 tw 8 alloc 4 mem 255
UDP: inuse 2 mem 0
UDPLITE: inuse 1
RAW: inuse 4
FRAG: inuse 9 memory 100
TCP6: inuse 5
UDP6: inuse 6
UDPLITE6: inuse 0
RAW6: inuse 1
FRAG6: inuse 7 memory 1
`
  expect(parseSocketCounts(text)).toEqual({ tcp: 3, tcp6: 5, udp: 2, udp6: 6, other: 6 })
  expect(parseSocketCounts('sockets: used 0\nTCP: inuse 0 orphan 0 tw 0 alloc 0 mem 0\nUDP: inuse 0 mem 0\n')).toEqual({
    tcp: 0,
    tcp6: 0,
    udp: 0,
    udp6: 0,
    other: 0,
  })
})

test('sees one more when something listens', async () => {
  const many = Array.from({ length: 50 }, () => createServer())
  const before = readSocketCounts(process.pid).tcp
  for (const server of many) await once(server.listen(0, '127.0.0.1'), 'listening')
  // Others of this machine open and close theirs meanwhile.
  expect(readSocketCounts(process.pid).tcp - before).toBeGreaterThan(25)
  for (const server of many) server.close()
})

test('what the kernel does not tell is not taken for none', () => {
  for (const text of ['', 'sockets: used 3\n', 'TCP: inuse 0 orphan 0 tw 0 alloc 1 mem 0\n', 'TCP6: inuse 0\nUDP6: inuse 0\n'])
    expect(() => parseSocketCounts(text)).toThrow(/does not tell how many sockets/)
})
