import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { Allowance } from '../../src/channel/allowance.js'
import { encodeNumberFrame } from '../../src/channel/frames.js'
import type { WardenConnection } from '../../src/channel/index.js'
import { openWarden } from './native-warden.js'
import { connected, settle } from './scripted-warden.js'

const MiB = 2 ** 20

describe('what connections have on their way', () => {
  it('is together never more than a pool and a little for each, and each can always have the little', () => {
    const allowance = new Allowance()
    const held = Array.from({ length: 300 }, () => {
      const most = allowance.mostFor(0)
      allowance.change(0, most)
      return most
    })
    expect(held[0]).toBe(4096 + MiB / 2)
    expect(held[15]).toBeGreaterThan(8192)
    expect(Math.min(...held)).toBeGreaterThanOrEqual(4096)
    expect(held.reduce((sum, bytes) => sum + bytes)).toBeLessThanOrEqual(2 * MiB + 300 * 4096)
  })

  it('is free again for the others when one has ended', async () => {
    const { peer, warden } = await connected()
    const open = async (): Promise<WardenConnection> => {
      const connecting = warden.connect(8080)
      const { run } = await peer.hear('connect')
      peer.send('connected', { run })
      return await connecting
    }
    const sent = (run: number): number =>
      peer
        .heard('stdin')
        .filter((frame) => frame.run === run)
        .reduce((sum, { payload }) => sum + payload.length, 0)
    const [one, other] = [await open(), await open()]
    one.write(Buffer.alloc(MiB)).catch(() => {})
    await settle()
    one.closed.catch(() => {})
    peer.sendRaw(encodeNumberFrame('closed', { run: 1 }, 104))
    await settle()
    void other.write(Buffer.alloc(MiB))
    await settle()
    expect([sent(1), sent(2)]).toEqual([4096 + MiB / 2, 4096 + MiB / 2])
  })
})

/** Of the one warden that this process started last. */
function wardenMemory(): number {
  const own = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => readStatus(pid))
    .filter((status) => status.includes(`PPid:\t${process.pid}\n`) && status.startsWith('Name:\twarden\n'))
  expect(own).toHaveLength(1)
  return Number(/RssAnon:\s+(\d+) kB/.exec(own[0] ?? '')?.[1]) * 1024
}

function readStatus(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    return ''
  }
}

describe('the real warden', () => {
  it('holds little of 300 connections that nobody reads, however slowly they are read from, and carries another meanwhile', { timeout: 60_000 }, async () => {
    const sockets: Socket[] = []
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      socket.on('error', () => {})
      sockets.push(socket)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    await using native = await openWarden()
    const filler = Buffer.alloc(16 * MiB)
    try {
      for (let each = 0; each < 300; each += 1) {
        const connection = await native.warden.connect(port)
        connection.closed.catch(() => {})
        connection.write(filler).catch(() => {})
      }
      await expect.poll(() => sockets.length).toBe(300)
      const peak = { bytes: 0 }
      for (let round = 0; round < 20; round += 1) {
        await new Promise((resolve) => setTimeout(resolve, 50))
        for (const socket of sockets) socket.read(8192)
        peak.bytes = Math.max(peak.bytes, wardenMemory())
      }
      expect(peak.bytes).toBeGreaterThan(MiB)
      expect(peak.bytes).toBeLessThan(6 * MiB)
      const last = await native.warden.connect(port)
      await expect.poll(() => sockets.length).toBe(301)
      sockets.at(-1)?.pipe(sockets.at(-1) as Socket)
      const writing = last.write(filler).then(() => last.end())
      let echoed = 0
      for await (const bytes of last.output) echoed += bytes.length
      await writing
      expect(echoed).toBe(filler.length)
    } finally {
      for (const socket of sockets) socket.destroy()
      server.close()
    }
  })
})
