/** What the acts are done with: a real engine over bwrap, a pool, and a server on loopback that some may reach. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPlatform, Sandbox, SandboxPool } from '../../dist/index.js'

/** Answers with as many bytes as its path says. */
async function openServer() {
  const server = createServer((request, response) => response.end(Buffer.alloc(Number(request.url.slice(1)) || 0, 'x')))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  return {
    allowed: `http://soak.localhost:${port}`,
    denied: `http://denied.example:${port}`,
    rule: { host: 'soak.localhost', ports: [port] },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export async function openGround() {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-soak-'))
  const egress = await openServer()
  const policy = { ceiling: { network: { private: ['127.0.0.0/8', '::1/128'] } } }
  const platform = createPlatform({ snapshotDir: join(folder, 'snapshots'), policy })
  const spec = { driver: 'bwrap', limits: { memory: '192m', cpus: 1, time: '60s' }, lifetime: '60m' }
  return {
    Sandbox,
    platform,
    egress,
    snapshotDir: folder,
    snapshotOf: () => Sandbox.snapshots({ platform }),
    create: (more = {}) => Sandbox.create({ platform, ...spec, network: { allow: [egress.rule] }, ...more }),
    openPool: () => SandboxPool.create({ platform, driver: 'bwrap', limits: { memory: '192m', time: '60s' }, size: 2, max: 6 }),
    async [Symbol.asyncDispose]() {
      await platform[Symbol.asyncDispose]()
      await egress[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
