import { expect, test } from 'vitest'
import { ownServer, plain } from './own-server.js'

test('many streams at once are no leak to anyone: nothing is warned of, and all are left when they are', async () => {
  const warnings: string[] = []
  const warn = (warning: Error): number => warnings.push(warning.message)
  process.on('warning', warn)
  try {
    await using own = await ownServer()
    const client = own.client(await own.key('red'))
    const { id } = await client.create(plain)
    const streams = Array.from({ length: 30 }, (_, index) => (index % 2 === 0 ? client.events.listen() : client.life.events(id))[Symbol.asyncIterator]())
    const firsts = streams.map((stream) => stream.next())
    await expect.poll(() => own.server.connections).toBeGreaterThanOrEqual(30)
    await client.life.pause(id).catch(() => undefined)
    await client.close(id)
    await Promise.all(firsts)
    for (const stream of streams) await stream.return?.()
    await expect.poll(() => own.server.connections).toBeLessThan(5)
    expect(warnings).toEqual([])
  } finally {
    process.off('warning', warn)
  }
})
