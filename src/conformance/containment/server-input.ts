import { ensure, ensureSame } from '../check.js'
import type { ServerCase, ServerRequest, ServerView } from './server-view.js'

interface Asking {
  readonly id: string
  readonly name: string
  readonly threats: string
  readonly tries: string
  readonly means: string
  /** What must be answered; otherwise a refusal of any kind. */
  readonly statuses?: readonly number[]
  readonly asks: (server: ServerView) => Readonly<Record<string, ServerRequest>>
}

const refused = [400, 401, 403, 404, 405, 413, 414, 415, 421, 422, 431, 501]

function askingCase({ id, name, threats, tries, means, asks, statuses = refused }: Asking): ServerCase {
  return {
    id: `server/${id}`,
    name,
    group: 'server',
    threats: threats.split(' '),
    tries,
    means,
    denial: true,
    run: async (server) => {
      const said: Record<string, number> = {}
      for (const [label, request] of Object.entries(asks(server))) said[label] = (await server.request(request)).status
      ensureSame(Object.fromEntries(Object.entries(said).filter(([, status]) => !statuses.includes(status))), {}, 'what was not refused')
      await ensureAlive(server)
      return Object.entries(said)
        .map(([label, status]) => `${label}: ${status}`)
        .join(', ')
    },
  }
}

async function ensureAlive(server: ServerView): Promise<void> {
  const { status } = await server.request({ method: 'GET', path: '/v1/sandboxes', key: server.first.key })
  ensureSame(status, 200, 'what a good request is answered afterwards')
}

function creating(server: ServerView, spec: unknown): ServerRequest {
  return { method: 'POST', path: '/v1/sandboxes', key: server.first.key, body: typeof spec === 'string' ? spec : JSON.stringify(spec) }
}

const nested = '['.repeat(100_000)

const askings: readonly Asking[] = [
  {
    id: 'paths',
    name: 'paths that climb, are encoded twice, hold a NUL or are far too long lead nowhere',
    threats: 'S-02 M-13 F-16',
    tries: 'Asks for eleven ways to write a path that leads up.',
    means: 'A request reaches what its route does not name.',
    asks: ({ first: { key } }) =>
      Object.fromEntries(
        ['../keys', '%2e%2e/keys', '..%2fkeys', '%252e%252e%252fkeys', 'a%00b', '%2e%2e%5ckeys', 'A'.repeat(20), 'x'.repeat(5000), '-rf', 'a.b', '%ff%fe'].map(
          (part) => [part.slice(0, 20), { method: 'GET', path: `/v1/sandboxes/${part}`, key }],
        ),
      ),
  },
  {
    id: 'bad-json',
    name: 'what is no JSON, too deep, or says a thing twice is refused, and nothing is changed by it',
    threats: 'S-04 S-23',
    tries: 'Sends half a value, a hundred thousand brackets, double keys, prototypes, a mark of order, NaN and bytes that are no text.',
    means: 'The server can be confused or ended by what it is sent.',
    asks: (server) => ({
      half: creating(server, '{"template":'),
      deep: creating(server, nested),
      twice: creating(server, '{"limits":{"memory":"64m","memory":"64g"}}'),
      prototype: creating(server, '{"__proto__":{"driver":"fake"}}'),
      constructor: creating(server, '{"constructor":{"prototype":{"x":1}}}'),
      'a mark of order': creating(server, '\ufeff{"unknown":1}'),
      NaN: creating(server, '{"limits":{"cpus":NaN}}'),
      huge: creating(server, '{"limits":{"memory":1e999}}'),
      'no object': creating(server, '[]'),
      'no text': { method: 'POST', path: '/v1/sandboxes', key: server.first.key, body: new Uint8Array([0x22, 0xff, 0xfe, 0x22]) },
    }),
  },
  {
    id: 'content-types',
    name: 'a body that a web page could send without asking is refused',
    threats: 'S-05',
    tries: 'Sends JSON as plain text, as a form and as nothing.',
    means: 'A page that somebody visits can make requests in their name.',
    asks: (server) =>
      Object.fromEntries(
        ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'].map((type) => [
          type,
          { ...creating(server, {}), headers: { 'content-type': type } },
        ]),
      ),
  },
  {
    id: 'origins',
    name: 'requests of other origins are refused, and no origin is echoed',
    threats: 'S-07',
    tries: 'Sends requests with the Origin of another site, with null, and a preflight.',
    means: 'A page that somebody visits can make requests in their name.',
    asks: (server) => ({
      another: { ...creating(server, {}), headers: { origin: 'https://evil.test' } },
      null: { ...creating(server, {}), headers: { origin: 'null' } },
      reading: { method: 'GET', path: '/v1/sandboxes', key: server.first.key, headers: { origin: 'https://evil.test' } },
      preflight: { method: 'OPTIONS', path: '/v1/sandboxes', headers: { origin: 'https://evil.test', 'access-control-request-method': 'POST' } },
    }),
  },
  {
    id: 'foreign-hosts',
    name: 'requests for another host are refused, so that no name can be bent to this server',
    threats: 'S-08 N-16',
    tries: 'Sends requests with the Host of another site, of none, and with a port that is not its own.',
    means: 'A page of a stranger can reach the server by a name that leads to the loopback.',
    asks: ({ first: { key } }) =>
      Object.fromEntries(
        ['evil.test', 'localhost.evil.test', '169.254.169.254', ''].map((host) => [
          host || 'none',
          { method: 'GET', path: '/v1/sandboxes', key, headers: { host } },
        ]),
      ),
  },
  {
    id: 'sockets',
    name: 'a WebSocket of another origin, or without a key, is not opened',
    threats: 'S-08',
    tries: 'Asks for a terminal without a key, with another Origin, and with the key in the address.',
    means: 'A page that somebody visits gets a terminal.',
    asks: ({ first }) => {
      const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' }
      const path = `/v1/sandboxes/${first.sandbox}/terminal`
      return {
        'no key': { method: 'GET', path, headers: upgrade },
        'another origin': { method: 'GET', path, key: first.key, headers: { ...upgrade, origin: 'https://evil.test' } },
        'in the address': { method: 'GET', path: `${path}?key=${first.key}&access_token=${first.key}`, headers: upgrade },
      }
    },
  },
  {
    id: 'methods',
    name: 'other methods, and headers that name one, go around nothing',
    threats: 'S-13',
    tries: 'Sends TRACE, HEAD and OPTIONS, an override by header, and HTTP/1.0, without a key.',
    means: 'A request is judged as one thing and done as another.',
    asks: ({ first }) => ({
      TRACE: { method: 'TRACE', path: '/v1/sandboxes' },
      HEAD: { method: 'HEAD', path: '/v1/sandboxes' },
      override: { method: 'GET', path: `/v1/sandboxes/${first.sandbox}`, headers: { 'x-http-method-override': 'DELETE' } },
      lower: { method: 'get', path: '/v1/sandboxes' },
      unknown: { method: 'PURGE', path: '/v1/sandboxes' },
      'an absolute URL': { method: 'GET', path: 'http://evil.test/v1/sandboxes' },
    }),
  },
  {
    id: 'injected-options',
    name: 'names and images that look like options of a runtime are refused',
    threats: 'S-16 A-15',
    tries: 'Asks for templates and names that begin with dashes, hold spaces, paths or line feeds.',
    means: 'A caller can pass options to the runtime, such as one that takes away its walls.',
    asks: (server) => ({
      'a template': creating(server, { template: '--privileged' }),
      'a path': creating(server, { template: '../../etc' }),
      'a name': creating(server, { name: 'a\nb' }),
      'a user': creating(server, { user: '0:0' }),
      'a driver': creating(server, { driver: 'oci:--root=/' }),
    }),
  },
  {
    id: 'forbidden-requests',
    name: 'what reaches into the machine is refused: mounts, filters, drivers without walls, credentials of the host',
    threats: 'S-17 A-15',
    tries: "Asks for folders of the host, the docker socket, a filter of its own, no walls, and the host's files as credentials.",
    means: 'Whoever has a key is root on the machine.',
    asks: (server) => ({
      'the root': creating(server, { mounts: [{ source: '/', target: '/host', mode: 'rw' }] }),
      'the docker socket': creating(server, { mounts: [{ source: '/var/run/docker.sock', target: '/docker.sock', mode: 'ro' }] }),
      'no walls': creating(server, { driver: 'fake', minTier: 'none' }),
      'a filter': creating(server, { seccomp: { defaultAction: 'SCMP_ACT_ALLOW' } }),
      'a file as a filter': creating(server, { seccomp: '/etc/shadow' }),
      'a file as a credential': creating(server, {
        network: { allow: ['example.com'], credentials: [{ host: 'example.com', header: 'x', file: '/etc/shadow' }] },
      }),
      privileged: creating(server, { privileged: true }),
      'the host network': creating(server, { network: 'host' }),
      capabilities: creating(server, { capabilities: ['SYS_ADMIN'] }),
    }),
  },
  {
    id: 'set-id-files',
    name: 'the files API gives no set-id bits and no devices',
    threats: 'S-22',
    tries: 'Writes a file with mode 4777 and changes one to 6755 by the API.',
    means: 'A caller can leave programs that make root.',
    asks: ({ first: { key, sandbox } }) => ({
      chmod: { method: 'POST', path: `/v1/sandboxes/${sandbox}/files/chmod`, key, body: JSON.stringify({ path: '/workspace', mode: 0o6755 }) },
      write: {
        method: 'PUT',
        path: `/v1/sandboxes/${sandbox}/files/content?path=%2Fworkspace%2Fx&mode=2559`,
        key,
        body: 'x',
        headers: { 'content-type': 'application/octet-stream' },
      },
    }),
  },
  {
    id: 'unknown-keys',
    name: 'keys that nobody knows are refused by their name',
    threats: 'S-29',
    tries: 'Asks for a sandbox with words that are almost those of a limit.',
    means: 'A limit that was misspelt is not there, and nobody says so.',
    asks: (server) => ({
      memroy: creating(server, { limits: { memroy: '64m' } }),
      nework: creating(server, { nework: { allow: [] } }),
      allowed: creating(server, { network: { allowed: ['example.com'] } }),
    }),
  },
  {
    id: 'other-places',
    name: 'addresses of the machine are no template and no place to fetch from',
    threats: 'S-26 A-16',
    tries: 'Asks for templates that are URLs of the loopback, of metadata services and of files.',
    means: 'The server fetches what only it may reach, for whoever asks.',
    asks: (server) =>
      Object.fromEntries(
        ['http://127.0.0.1/x', 'file:///etc/passwd', 'http://169.254.169.254/', '//evil.test/x', 'git://127.0.0.1/x'].map((template) => [
          template,
          creating(server, { template }),
        ]),
      ),
  },
]

const smuggling: ServerCase = {
  id: 'server/smuggling',
  name: 'a request that two servers read in two ways is refused, and the connection closed',
  group: 'server',
  threats: ['S-14'],
  tries: 'Sends two lengths, a length and chunks, and bare line feeds, each with a second request behind it.',
  means: 'A second request can be hidden in the first.',
  denial: true,
  run: async (server) => {
    const hidden = `GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
    const head = `POST /v1/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\n`
    const said = await Promise.all(
      [
        `${head}Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
        `${head}Content-Length: ${hidden.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
        `${head}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${hidden}`,
        `POST /v1/sandboxes HTTP/1.1\nHost: 127.0.0.1\nContent-Length: 0\n\n${hidden}`,
      ].map((bytes) => server.raw(bytes)),
    )
    const through = said.filter((each) => /HTTP\/1\.1 200/.test(each))
    ensureSame(through, [], 'where the hidden request was answered')
    await ensureAlive(server)
    return said.map((each) => each.slice(9, 12) || 'closed').join(', ')
  },
}

const quiet: ServerCase = {
  id: 'server/log',
  name: 'no key is in the log or in an answer',
  group: 'server',
  threats: ['S-08', 'M-16'],
  tries: 'Reads the log after all that was asked, and looks for the keys.',
  means: 'Whoever reads the log can use the server.',
  run: async (server) => {
    const log = server.log()
    const keys = [server.first.key, server.second.key, server.keys.reading]
    ensureSame(keys.filter((key) => log.includes(key)).length, 0, 'the keys in the log')
    const { headers, body } = await server.request({ method: 'GET', path: `/v1/sandboxes/${server.first.sandbox}`, key: server.first.key })
    ensure(!body.includes(server.first.key) && headers['access-control-allow-origin'] === undefined, 'no answer may hold a key or an origin', headers)
    return `${log.length} characters of log`
  },
}

export const serverInputCases: readonly ServerCase[] = [...askings.map(askingCase), smuggling, quiet]
