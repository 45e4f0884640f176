import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pathOf, type Route, type RouteName, routes } from '../../src/contract/wire/routes.js'
import { localActor } from '../../src/ledger.js'
import { Router } from '../../src/server/router.js'
import { type Answer, type OwnServer, ownServer, plain } from './own-server.js'

const names = Object.keys(routes) as RouteName[]
let sources = 0
const unknownId = 'aaaaaaaaaaaaaaaaaaaa'

/** What each thing in a path is called in these tests; a route with another name in its path fails them. */
const values: Readonly<Record<string, string>> = {
  process: '7',
  run: 'a'.repeat(26),
  execution: 'a'.repeat(26),
  context: unknownId,
  port: '8080',
  ask: 'a'.repeat(26),
  token: 'e30.AAAA',
  snapshot: 'no-such',
  pool: unknownId,
  call: 'a'.repeat(26),
  template: 'python',
  key: 'a'.repeat(12),
  tenant: 'red',
}

function methodOf({ method }: Route): string {
  return method === '*' ? 'GET' : method
}

/** A request for a route that is right in everything but who asks. */
function requestOf(
  name: RouteName,
  id: string,
): { readonly path: string; readonly method: string; readonly headers: Record<string, string>; readonly body?: unknown } {
  const route: Route = routes[name]
  const params = Object.fromEntries(
    [...route.path.matchAll(/:(\w+)/g)].map(([, param = '']) => [param, param === 'id' ? id : (values[param] ?? missing(param))]),
  )
  const method = methodOf(route)
  const hasBody = method !== 'GET' && method !== 'DELETE' && route.takes === undefined
  const type = route.takes === 'tar' ? 'application/x-tar' : 'application/octet-stream'
  return {
    path: pathOf(name, params) + (queries[name] ?? ''),
    method,
    headers: route.takes ? { 'content-type': type } : {},
    ...(hasBody && { body: bodies[name] ?? {} }),
  }
}

function missing(param: string): never {
  throw new Error(`no test knows what ${param} stands for in a path`)
}

const queries: Partial<Record<RouteName, string>> = {
  'sandboxes.changes': '?target=/x',
  'files.read': '?path=a',
  'files.write': '?path=a',
  'files.stat': '?path=a',
  'files.list': '?path=.',
  'files.remove': '?path=a',
  'files.watch': '?path=.',
  'files.pack': '?path=.',
  'files.unpack': '?path=.',
  'sandboxes.closeAll': '?name=nobody',
}

const bodies: Partial<Record<RouteName, unknown>> = {
  'sandboxes.extend': { duration: '1m' },
  'sandboxes.lifetime': { duration: '1m' },
  'processes.start': { command: ['true'] },
  'processes.signal': { signal: 'SIGTERM' },
  'processes.resize': { cols: 80, rows: 24 },
  'runs.signal': { signal: 'SIGTERM' },
  'runs.resize': { cols: 80, rows: 24 },
  'runs.approve': { approval: 'once' },
  'network.approve': { approval: 'once' },
  'network.update': { allow: [] },
  'files.mkdir': { path: 'a' },
  'files.move': { from: 'a', to: 'b' },
  'files.copy': { from: 'a', to: 'b' },
  'files.symlink': { target: 'a', path: 'b' },
  'files.chmod': { path: 'a', mode: 420 },
  'files.search': { path: '.', pattern: 'a' },
  'code.execute': { code: '1' },
  'code.answer': { line: null },
  'urls.sign': { port: 8080 },
}

describe('every route of the router', () => {
  let own: OwnServer
  let expired: string
  beforeAll(async () => {
    own = await ownServer()
    const end = Date.now() + 1000
    expired = await own.key('red', 'admin', new Date(end).toISOString())
    await new Promise((resolve) => setTimeout(resolve, end - Date.now() + 5))
  })
  afterAll(() => own[Symbol.asyncDispose]())
  const send = (name: RouteName, id: string, key?: string, from?: string): Promise<Answer> => {
    const { path, method, headers, body } = requestOf(name, id)
    return own.ask(path, { method, key, headers, ...(from !== undefined && { from }), ...(body !== undefined && { body }) })
  }

  test('there are no others than those of the contract, each found by its own path', () => {
    const router = new Router()
    for (const name of names) expect(router.match(methodOf(routes[name]), requestOf(name, unknownId).path.split('?')[0] ?? '')?.name).toBe(name)
    expect(names.length).toBeGreaterThan(70)
  })

  test.each(names.filter((name) => routes[name].scope !== 'public'))('S-01 %s without a key is 401, and says nothing of what is there', async (name) => {
    const answer = await send(name, unknownId)
    expect([answer.status, answer.json().code]).toEqual([401, 'unauthorized'])
  })

  test('S-01 only health and readiness are told to everyone', async () => {
    const open = names.filter((name) => routes[name].scope === 'public')
    expect(open.sort()).toEqual(['house.health', 'house.ready'])
    for (const name of open) expect((await send(name, unknownId)).status).toBe(200)
  })

  test.each(names.filter((name) => !['public', 'signed'].includes(routes[name].scope)))('M-11 %s with a key that is wrong in any way is 401', async (name) => {
    const good = await own.key('red', 'admin')
    const revoked = await own.key('red', 'admin')
    const [{ id: revokedId = '' } = {}] = (await own.ledger.keys.list({ tenant: 'red' }, { limit: 1000 })).items.slice(-1)
    await own.ledger.keys.revoke(revokedId, localActor)
    // Who is wrong too often is slowed down, which is tried elsewhere.
    sources += 1
    const from = `127.7.${sources >> 8}.${(sources % 250) + 1}`
    for (const bad of [expired, revoked, good.slice(0, -1), `${good}x`, good.toUpperCase(), 'eyJhbGciOiJub25lIn0.e30.'])
      expect([(await send(name, unknownId, bad, from)).status, bad.length]).toEqual([401, bad.length])
  })

  test.each(names.filter((name) => routes[name].scope === 'admin'))('%s is refused to a key that is not for admin', async (name) => {
    expect([(await send(name, unknownId, await own.key('red', 'run'))).status]).toEqual([403])
  })

  test.each(names.filter((name) => routes[name].scope === 'run'))('%s is refused to a key that may only read', async (name) => {
    expect([(await send(name, unknownId, await own.key('red', 'read'))).status]).toEqual([403])
  })

  const ofOne = names.filter((name) => (routes[name].path as string).includes(':id') && routes[name].reply !== 'upgrade')

  test.each(ofOne)('M-10 %s of another tenant’s sandbox answers as one that never was', async (name) => {
    const red = own.client(await own.key('red'))
    const { id } = await red.create({ ...plain, network: false })
    const blue = await own.key('blue')
    const [foreign, unknown] = [await send(name, id, blue), await send(name, unknownId, blue)]
    const told = ({ status, text }: Answer): unknown => [status, text.replaceAll(id, 'ID').replaceAll(unknownId, 'ID')]
    expect(told(foreign)).toEqual(told(unknown))
    if (name !== 'sandboxes.close' && name !== 'sandboxes.release') expect(foreign.status).toBe(404)
    expect((await red.info(id)).state).toBe('running')
    await red.close(id)
  })

  test.each(ofOne)('M-13 %s refuses ids that are none', async (name) => {
    const key = await own.key('red')
    for (const bad of ['UPPERCASEUPPERCASE20', 'a.b', '-aaaaaaaaaaaaaaaaaaa', 'é'.repeat(20), 'a'.repeat(1001), '%2e%2e', '..%2f..%2fetc', '%00', 'a%5cb']) {
      const { path, method, headers, body } = requestOf(name, 'THE-ID')
      const answer = await own.ask(path.replace('THE-ID', bad.includes('%') ? bad : encodeURIComponent(bad)), {
        method,
        key,
        headers,
        ...(body !== undefined && { body }),
      })
      expect([bad, answer.status]).toEqual([bad, 400])
    }
  })
})
