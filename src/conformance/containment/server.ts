import { type Route, routes } from '../../contract/wire/routes.js'
import { ensure, ensureSame } from '../check.js'
import type { ServerAnswer, ServerCase, ServerRequest, ServerView } from './server-view.js'
import { serverInputCases } from './server-input.js'

/** As the kernel writes them in /proc/net. */
const loopback4 = '0100007F'
const loopback6 = '00000000000000000000000001000000'

const all = Object.values(routes) as readonly Route[]
const guarded = all.filter(({ scope }) => scope !== 'public' && scope !== 'signed')

/** Whatever a route has a part for: the sandbox of that tenant, and what cannot be there of the rest. */
function asked({ method, path }: Route, sandbox: string): ServerRequest {
  const filled = path.replace(':id', sandbox).replace(':port', '8080').replace(/:\w+/g, 'aaaaaaaaaaaaaaaaaaaa').replace(/\*$/, 'x')
  const verb = method === '*' ? 'GET' : method
  return { method: verb, path: filled, ...(verb !== 'GET' && verb !== 'DELETE' && { body: '{}' }) }
}

async function answersOf(server: ServerView, requests: readonly ServerRequest[]): Promise<readonly (ServerAnswer & { readonly what: string })[]> {
  const answers = []
  for (const request of requests) answers.push({ ...(await server.request(request)), what: `${request.method} ${request.path}` })
  return answers
}

function ensureAll(answers: readonly (ServerAnswer & { readonly what: string })[], statuses: readonly number[]): string {
  const others = answers.filter(({ status }) => !statuses.includes(status)).map(({ what, status, body }) => `${what}: ${status} ${body.slice(0, 80)}`)
  ensureSame(others, [], `what was not answered by ${statuses.join(' or ')}`)
  return `${answers.length} answered by ${[...new Set(answers.map(({ status }) => status))].join(', ')}`
}

const unauthorized = [401, 429]

const doors: readonly ServerCase[] = [
  {
    id: 'server/every-route-needs-a-key',
    name: 'every route that is not public needs a key',
    group: 'server',
    threats: ['S-01'],
    tries: 'Asks every route that the server has without a key.',
    means: 'Whoever reaches the port can use the machine.',
    denial: true,
    run: async (server) =>
      ensureAll(
        await answersOf(
          server,
          guarded.map((route) => asked(route, server.first.sandbox)),
        ),
        unauthorized,
      ),
  },
  {
    id: 'server/other-tenants',
    name: "no route does anything to another tenant's sandbox",
    group: 'tenants',
    threats: ['M-10', 'M-16'],
    tries: "Asks every route that names a sandbox for the second tenant's, with the first tenant's key.",
    means: 'One tenant can use, read or close the sandboxes of another.',
    denial: true,
    run: async (server) => {
      const named = guarded.filter(({ path, method }) => path.includes(':id') && !(method === 'DELETE' && path.endsWith(':id')) && !path.endsWith('/release'))
      const answers = await answersOf(
        server,
        named.map((route) => ({ ...asked(route, server.second.sandbox), key: server.first.key })),
      )
      const said = ensureAll(answers, [400, 403, 404, 415, 426])
      // Both are quiet when there is no such sandbox, as there is none for this key.
      await server.request({ method: 'DELETE', path: `/v1/sandboxes/${server.second.sandbox}`, key: server.first.key })
      await server.request({ method: 'POST', path: `/v1/sandboxes/${server.second.sandbox}/release`, key: server.first.key, body: '{}' })
      const { status } = await server.request({ method: 'GET', path: `/v1/sandboxes/${server.second.sandbox}`, key: server.second.key })
      ensureSame(status, 200, "what the second tenant's sandbox answers afterwards")
      return said
    },
  },
  {
    id: 'server/lists-are-apart',
    name: "no list shows anything of another tenant's",
    group: 'tenants',
    threats: ['M-16'],
    tries: "Lists sandboxes, snapshots and pools with each key, and looks for the other's id.",
    means: 'One tenant sees what another does.',
    denial: true,
    run: async (server) => {
      const lists = ['/v1/sandboxes', '/v1/snapshots', '/v1/pools', '/v1/usage']
      const seen = await answersOf(
        server,
        lists.map((path) => ({ method: 'GET', path, key: server.first.key })),
      )
      ensureSame(
        seen.filter(({ body }) => body.includes(server.second.sandbox)).map(({ what }) => what),
        [],
        'where the second tenant was seen',
      )
      ensure(seen[0]?.body.includes(server.first.sandbox) === true, 'its own must be there', seen[0])
      return `${lists.length} lists`
    },
  },
  {
    id: 'server/close-all-is-its-own',
    name: 'closing everything closes nothing of another tenant',
    group: 'tenants',
    threats: ['M-10'],
    tries: "With the reading key and no filter, closes everything; then looks for the second tenant's sandbox.",
    means: 'One tenant can end the work of all.',
    denial: true,
    run: async (server) => {
      const { status } = await server.request({ method: 'DELETE', path: '/v1/sandboxes', key: server.keys.reading })
      ensureSame(status, 403, 'the answer to a key that may only read')
      const after = await server.request({ method: 'GET', path: `/v1/sandboxes/${server.second.sandbox}`, key: server.second.key })
      ensureSame(after.status, 200, "what the second tenant's sandbox answers")
      return 'refused'
    },
  },
  {
    id: 'server/scopes',
    name: 'a key that may only read can do nothing else, and none can administrate',
    group: 'server',
    threats: ['M-11', 'S-17'],
    tries: 'Asks every route that runs with a reading key, and every route of operators with a running one.',
    means: 'A key is for more than it says.',
    denial: true,
    run: async (server) => {
      const running = guarded
        .filter(({ scope, path }) => scope === 'run' && !path.includes(':'))
        .map((route) => ({ ...asked(route, server.first.sandbox), key: server.keys.reading }))
      const ruling = guarded.filter(({ scope }) => scope === 'admin').map((route) => ({ ...asked(route, server.first.sandbox), key: server.first.key }))
      return ensureAll(await answersOf(server, [...running, ...ruling]), [403])
    },
  },
  {
    id: 'server/bind-address',
    name: 'it listens on the loopback and nowhere else',
    group: 'server',
    threats: ['S-10'],
    tries: "Reads from the kernel where the server's port is listened on.",
    means: 'Others on the network can reach it.',
    run: async (server) => {
      const addresses = await server.addresses()
      ensure(addresses.includes(loopback4), 'it must listen on 127.0.0.1', addresses.join(', '))
      // Another program of this machine may have the same port of the other loopback.
      ensureSame(
        addresses.filter((address) => ![loopback4, loopback6].includes(address)),
        [],
        'the addresses beyond the loopback',
      )
      return '127.0.0.1'
    },
  },
  {
    id: 'server/exposure',
    name: 'it refuses to listen for everyone without a certificate',
    group: 'server',
    threats: ['S-10'],
    tries: 'Starts a server at 0.0.0.0 without TLS.',
    means: 'Keys travel over the network in the clear.',
    denial: true,
    run: async (server) => {
      const said = await server.expose()
      ensure(/needs a certificate|needs a key/.test(said), 'it must be refused', said)
      return said
    },
  },
  {
    id: 'server/socket',
    name: "a socket of its own is its owner's alone",
    group: 'server',
    threats: ['S-11'],
    tries: 'Starts a server at a socket, and looks at its mode and owner.',
    means: 'Every user of the machine can use the sandboxes of this one.',
    run: async (server) => {
      const { mode, isOwn } = await server.socket()
      ensureSame({ mode: mode.toString(8), isOwn }, { mode: '600', isOwn: true }, 'the socket')
      return '0600'
    },
  },
  {
    id: 'server/wrong-keys',
    name: 'keys that are revoked, expired, cut, altered or of another kind are refused, all alike',
    group: 'server',
    threats: ['M-11'],
    tries: 'Asks with eight keys that are not good.',
    means: 'A key lives longer than it should, or can be guessed.',
    denial: true,
    run: async (server) => {
      const { key } = server.first
      const wrong = [
        server.keys.revoked,
        server.keys.expired,
        key.slice(0, -1),
        `${key}x`,
        key.toUpperCase(),
        `${key.slice(0, -4)}AAAA`,
        'eyJhbGciOiJub25lIn0.e30.',
        'null',
      ]
      const answers = await answersOf(
        server,
        wrong.map((each) => ({ method: 'GET', path: '/v1/sandboxes', key: each })),
      )
      const said = ensureAll(answers, unauthorized)
      const bodies = new Set(answers.filter(({ status }) => status === 401).map(({ body }) => body.replace(/"requestId":"[^"]*"/, '')))
      ensure(bodies.size <= 1, 'all refusals must read the same', [...bodies])
      return said
    },
  },
]

/** What is asked of a server: keys and tenants first, what it is sent next, and what makes it wary last. */
export const serverCases: readonly ServerCase[] = [
  ...doors.filter(({ id }) => !/wrong-keys|every-route/.test(id)),
  ...serverInputCases,
  ...doors.filter(({ id }) => /wrong-keys|every-route/.test(id)),
]
