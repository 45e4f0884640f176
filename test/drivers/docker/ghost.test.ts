import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { labels } from '../../../src/drivers/docker/container.js'
import { sweepContainers } from '../../../src/drivers/docker/sweep.js'
import { createEngineClient } from '../../../src/sys/docker/client.js'
import { machineName } from '../../../src/sys/owner.js'
import { type Finding, Sweeper } from '../../../src/sys/sweeper.js'

let folder: string
let server: Server | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-ghost-'))
})
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
  rmSync(folder, { recursive: true })
})

/** Docker does so after it was killed: a container that it removed as it started again stays in its list, as dead, until it starts once more. */
test('a container that an engine lists and does not have is not told as removed, again and again', async () => {
  const ids = ['a'.repeat(64), 'b'.repeat(64)]
  const gone = ids[0]
  const owner = '1.1.1.00000000000000000000000000000000'
  const path = join(folder, 'socket')
  server = createServer(({ method, url = '' }, response) => {
    response.setHeader('Api-Version', '1.43').setHeader('Content-Type', 'application/json')
    if (method === 'GET' && url.includes('/containers/json'))
      response.end(JSON.stringify(ids.map((Id) => ({ Id, State: 'dead', Labels: { [labels.owner]: owner, [labels.machine]: machineName() } }))))
    else if (method === 'DELETE')
      response.writeHead(url.includes(gone as string) ? 404 : 204).end(url.includes(gone as string) ? '{"message":"No such container"}' : '')
    else response.end('OK')
  })
  await new Promise<void>((resolve) => server?.listen(path, resolve))
  const told: Finding[] = []
  const removed = await sweepContainers(createEngineClient({ kind: 'socket', path }), new Sweeper({ tell: (finding) => void told.push(finding) }))
  expect([removed, told]).toEqual([1, [{ kind: 'container', what: 'b'.repeat(12), owner, fate: 'removed' }]])
})
