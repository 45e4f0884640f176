import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startTeller } from '../../../src/drivers/docker/teller.js'
import { createEngineClient } from '../../../src/sys/docker/client.js'
import { rejectionOf } from '../../engine/collect.js'

/** One piece of its stdout, as an engine hands it on. */
function piece(text: string): Buffer {
  const header = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0])
  header.writeUInt32BE(text.length, 4)
  return Buffer.concat([header, Buffer.from(text)])
}

test('what begins no answer is not kept, however much of it comes', { timeout: 10_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gbx-teller-'))
  const engine = createHttpServer((request, response) => {
    if (request.url === '/_ping') response.setHeader('Api-Version', '1.43').end('OK')
    else response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ Id: 'a'.repeat(64) }))
  })
  engine.on('upgrade', (_request, socket) => {
    socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n')
    socket.once('data', () => socket.write(piece('+1234567890'.repeat(1000))))
    socket.on('error', () => undefined)
  })
  const path = join(folder, 'socket')
  await new Promise<void>((resolve) => void engine.listen(path, resolve))
  try {
    const teller = await startTeller(createEngineClient({ kind: 'socket', path }), 'cell')
    expect(await rejectionOf(teller.read('/proc/1/status'))).toMatchObject({ code: 'broken', message: expect.stringContaining('nobody asked for') as string })
    teller.close()
  } finally {
    engine.closeAllConnections()
    engine.close()
    rmSync(folder, { recursive: true })
  }
})
