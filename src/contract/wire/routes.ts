/**
 * Every route of the server: what both sides go by. What is in queries, bodies and replies stands beside, one file a resource; here is nothing that a browser would
 * have to load for it.
 */
import type { Scope } from '../tenants.js'

/**
 * `json`: one JSON value. `events`: as they come, as Server-Sent Events, NDJSON or frames, by Accept. `result`: the same, or all of it as one JSON value when it is
 * over. `bytes`: as they are. `text`: for programs that read text. `none`: nothing, which 204 says. `raw`: what a program in a sandbox answers; `upgrade`: the connection becomes another.
 */
export type ReplyKind = 'json' | 'events' | 'result' | 'bytes' | 'text' | 'none' | 'raw' | 'upgrade'

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | '*'
  /** `:name` is one part of a path; `*` at the end is the rest of it. */
  readonly path: string
  /** What a key must be for; `public`: nothing. `signed`: the address itself is proof. */
  readonly scope: Scope | 'public' | 'signed'
  readonly reply: ReplyKind
  /** Of a body that is not JSON. */
  readonly takes?: 'bytes' | 'tar' | 'raw'
  /** Makes something that an `Idempotency-Key` keeps from being made twice. */
  readonly creates?: true
  /** One line for people. */
  readonly does: string
}

const one = '/v1/sandboxes/:id'
const program = `${one}/processes/:process`

const sandboxRoutes = {
  'sandboxes.create': { method: 'POST', path: '/v1/sandboxes', scope: 'run', reply: 'json', creates: true, does: 'creates a sandbox' },
  'sandboxes.list': { method: 'GET', path: '/v1/sandboxes', scope: 'read', reply: 'json', does: 'lists sandboxes, a page at a time' },
  'sandboxes.closeAll': { method: 'DELETE', path: '/v1/sandboxes', scope: 'run', reply: 'json', does: 'closes all sandboxes that match' },
  'sandboxes.get': { method: 'GET', path: one, scope: 'read', reply: 'json', does: 'tells what a sandbox is' },
  'sandboxes.close': { method: 'DELETE', path: one, scope: 'run', reply: 'none', does: 'closes a sandbox; quiet when it is gone' },
  'sandboxes.extend': { method: 'POST', path: `${one}/extend`, scope: 'run', reply: 'json', does: 'lets a sandbox live at least so long from now' },
  'sandboxes.lifetime': { method: 'PUT', path: `${one}/lifetime`, scope: 'run', reply: 'json', does: 'lets a sandbox live so long from now' },
  'sandboxes.pause': { method: 'POST', path: `${one}/pause`, scope: 'run', reply: 'json', does: 'lets everything in a sandbox stand still' },
  'sandboxes.resume': { method: 'POST', path: `${one}/resume`, scope: 'run', reply: 'json', does: 'lets it go on' },
  'sandboxes.limit': { method: 'PATCH', path: `${one}/limits`, scope: 'run', reply: 'json', does: 'changes limits of a sandbox, all or none' },
  'sandboxes.usage': { method: 'GET', path: `${one}/usage`, scope: 'read', reply: 'json', does: 'tells what a sandbox used so far' },
  'sandboxes.receipt': { method: 'GET', path: `${one}/receipt`, scope: 'read', reply: 'json', does: 'issues a signed receipt of what is enforced' },
  'sandboxes.events': {
    method: 'GET',
    path: `${one}/events`,
    scope: 'read',
    reply: 'events',
    does: 'tells what happens to a sandbox from now on; with hold=true it is closed when the stream is left',
  },
  'sandboxes.release': { method: 'POST', path: `${one}/release`, scope: 'run', reply: 'json', does: 'ends a sandbox without waiting until nothing is left' },
  'sandboxes.changes': { method: 'GET', path: `${one}/changes`, scope: 'read', reply: 'json', does: 'lists what was written over a mount' },
  'urls.sign': {
    method: 'POST',
    path: `${one}/urls`,
    scope: 'run',
    reply: 'json',
    does: 'signs an address of a file or a port that needs no key until it expires',
  },
} as const satisfies Record<string, Route>

const programRoutes = {
  'processes.start': { method: 'POST', path: `${one}/processes`, scope: 'run', reply: 'result', creates: true, does: 'starts a program' },
  'processes.list': { method: 'GET', path: `${one}/processes`, scope: 'read', reply: 'json', does: 'lists the programs that are kept' },
  'processes.attach': { method: 'POST', path: `${program}/attach`, scope: 'run', reply: 'events', does: 'holds a view of a program that is kept' },
  'processes.output': { method: 'GET', path: `${program}/output`, scope: 'read', reply: 'events', does: 'tells what a program prints, and how it ends' },
  'processes.stdin': { method: 'POST', path: `${program}/stdin`, scope: 'run', reply: 'none', takes: 'bytes', does: 'writes to its standard input' },
  'processes.signal': { method: 'POST', path: `${program}/signal`, scope: 'run', reply: 'none', does: 'sends a signal to its group' },
  'processes.resize': { method: 'POST', path: `${program}/resize`, scope: 'run', reply: 'none', does: 'resizes its terminal' },
  'processes.kill': { method: 'POST', path: `${program}/kill`, scope: 'run', reply: 'none', does: 'kills it with all that it started' },
  'processes.terminal': { method: 'GET', path: `${one}/terminal`, scope: 'run', reply: 'upgrade', does: 'opens a terminal over a WebSocket' },
  'runs.start': { method: 'POST', path: '/v1/runs', scope: 'run', reply: 'result', creates: true, does: 'runs a command in a sandbox of its own' },
  'runs.stdin': { method: 'POST', path: '/v1/runs/:run/stdin', scope: 'run', reply: 'none', takes: 'bytes', does: 'writes to the standard input of a run' },
  'runs.signal': { method: 'POST', path: '/v1/runs/:run/signal', scope: 'run', reply: 'none', does: 'sends a signal to a run' },
  'runs.resize': { method: 'POST', path: '/v1/runs/:run/resize', scope: 'run', reply: 'none', does: 'resizes the terminal of a run' },
  'runs.kill': { method: 'POST', path: '/v1/runs/:run/kill', scope: 'run', reply: 'none', does: 'kills a run' },
  'runs.receipt': { method: 'GET', path: '/v1/runs/:run/receipt', scope: 'read', reply: 'json', does: 'issues the receipt of a run that was kept' },
  'runs.summary': { method: 'GET', path: '/v1/runs/:run/network/summary', scope: 'read', reply: 'json', does: 'sums up what a run did by its network' },
  'runs.approve': {
    method: 'POST',
    path: '/v1/runs/:run/network/approvals/:ask',
    scope: 'run',
    reply: 'none',
    does: 'answers a question about the network of a run',
  },
  'runs.release': { method: 'POST', path: '/v1/runs/:run/release', scope: 'run', reply: 'json', does: 'ends everything of a run that was kept' },
} as const satisfies Record<string, Route>

const files = `${one}/files`

const fileRoutes = {
  'files.list': { method: 'GET', path: files, scope: 'read', reply: 'result', does: 'lists a folder' },
  'files.remove': { method: 'DELETE', path: files, scope: 'run', reply: 'json', does: 'removes a file or folder' },
  'files.read': { method: 'GET', path: `${files}/content`, scope: 'read', reply: 'bytes', does: 'reads a file, or a range of it' },
  'files.write': { method: 'PUT', path: `${files}/content`, scope: 'run', reply: 'json', takes: 'bytes', does: 'writes a file' },
  'files.stat': { method: 'GET', path: `${files}/stat`, scope: 'read', reply: 'json', does: 'tells what is at a path' },
  'files.mkdir': { method: 'POST', path: `${files}/mkdir`, scope: 'run', reply: 'json', does: 'makes a folder with those above' },
  'files.move': { method: 'POST', path: `${files}/move`, scope: 'run', reply: 'json', does: 'moves a file or folder' },
  'files.copy': { method: 'POST', path: `${files}/copy`, scope: 'run', reply: 'json', does: 'copies a file or folder' },
  'files.symlink': { method: 'POST', path: `${files}/symlink`, scope: 'run', reply: 'json', does: 'makes a symbolic link' },
  'files.chmod': { method: 'POST', path: `${files}/chmod`, scope: 'run', reply: 'json', does: 'changes permissions' },
  'files.search': { method: 'POST', path: `${files}/search`, scope: 'read', reply: 'json', does: 'looks for lines in files' },
  'files.watch': { method: 'GET', path: `${files}/watch`, scope: 'read', reply: 'events', does: 'tells what happens in a folder' },
  'files.pack': { method: 'GET', path: `${files}/tar`, scope: 'read', reply: 'bytes', does: 'packs a folder as a tar archive' },
  'files.unpack': { method: 'PUT', path: `${files}/tar`, scope: 'run', reply: 'json', takes: 'tar', does: 'unpacks a tar archive into a folder' },
} as const satisfies Record<string, Route>

const code = `${one}/code`

const codeRoutes = {
  'code.languages': { method: 'GET', path: `${code}/languages`, scope: 'read', reply: 'json', does: 'tells which languages there are' },
  'code.execute': { method: 'POST', path: `${code}/executions`, scope: 'run', reply: 'result', does: 'runs code in a context' },
  'code.answer': { method: 'POST', path: `${code}/executions/:execution/answer`, scope: 'run', reply: 'none', does: 'answers what code asked for' },
  'code.interrupt': { method: 'POST', path: `${code}/executions/:execution/interrupt`, scope: 'run', reply: 'none', does: 'interrupts an execution' },
  'contexts.create': { method: 'POST', path: `${code}/contexts`, scope: 'run', reply: 'json', creates: true, does: 'makes a context' },
  'contexts.list': { method: 'GET', path: `${code}/contexts`, scope: 'read', reply: 'json', does: 'lists contexts' },
  'contexts.restart': {
    method: 'POST',
    path: `${code}/contexts/:context/restart`,
    scope: 'run',
    reply: 'json',
    does: 'starts the interpreter of a context anew',
  },
  'contexts.remove': { method: 'DELETE', path: `${code}/contexts/:context`, scope: 'run', reply: 'json', does: 'removes a context' },
} as const satisfies Record<string, Route>

const placeRoutes = {
  'ports.wait': { method: 'POST', path: `${one}/ports/:port`, scope: 'run', reply: 'none', does: 'waits until something listens on a port' },
  'ports.tunnel': { method: 'GET', path: `${one}/ports/:port`, scope: 'run', reply: 'upgrade', does: 'turns the connection into one to a port' },
  'ports.proxy': { method: '*', path: `${one}/ports/:port/*`, scope: 'run', reply: 'raw', takes: 'raw', does: 'passes a request to a port, WebSockets too' },
  'signed.use': { method: '*', path: '/v1/signed/:token/*', scope: 'signed', reply: 'raw', takes: 'raw', does: 'what a signed address stands for' },
  'network.update': { method: 'PUT', path: `${one}/network`, scope: 'run', reply: 'json', does: 'replaces the rules of the network' },
  'network.log': { method: 'GET', path: `${one}/network/log`, scope: 'read', reply: 'events', does: 'tells of connections and requests as they end' },
  'network.summary': { method: 'GET', path: `${one}/network/summary`, scope: 'read', reply: 'json', does: 'sums up what went by the network' },
  'network.asks': { method: 'GET', path: `${one}/network/approvals`, scope: 'run', reply: 'events', does: 'asks about what no rule decides' },
  'network.approve': { method: 'POST', path: `${one}/network/approvals/:ask`, scope: 'run', reply: 'none', does: 'answers such a question' },
  'snapshots.take': { method: 'POST', path: `${one}/snapshots`, scope: 'run', reply: 'json', creates: true, does: 'keeps what a sandbox has written' },
  'snapshots.diff': { method: 'GET', path: `${one}/diff`, scope: 'read', reply: 'json', does: 'lists what was changed since a snapshot' },
  'snapshots.export': { method: 'GET', path: `${one}/export`, scope: 'read', reply: 'bytes', does: 'packs what was changed as a tar archive' },
  'snapshots.fork': { method: 'POST', path: `${one}/fork`, scope: 'run', reply: 'json', creates: true, does: 'makes sandboxes that begin with its files' },
  'snapshots.list': { method: 'GET', path: '/v1/snapshots', scope: 'read', reply: 'json', does: 'lists snapshots' },
  'snapshots.remove': { method: 'DELETE', path: '/v1/snapshots/:snapshot', scope: 'run', reply: 'json', does: 'removes a snapshot' },
  'pools.create': { method: 'POST', path: '/v1/pools', scope: 'run', reply: 'json', creates: true, does: 'keeps sandboxes ready' },
  'pools.list': { method: 'GET', path: '/v1/pools', scope: 'read', reply: 'json', does: 'lists pools' },
  'pools.status': { method: 'GET', path: '/v1/pools/:pool', scope: 'read', reply: 'json', does: 'tells how full a pool is' },
  'pools.acquire': { method: 'POST', path: '/v1/pools/:pool/acquire', scope: 'run', reply: 'json', creates: true, does: 'takes a sandbox out of a pool' },
  'pools.close': { method: 'DELETE', path: '/v1/pools/:pool', scope: 'run', reply: 'none', does: 'closes a pool with all in it' },
  'pools.take': { method: 'POST', path: '/v1/takes', scope: 'run', reply: 'json', creates: true, does: 'takes a sandbox for one use' },
} as const satisfies Record<string, Route>

const houseRoutes = {
  'calls.cancel': { method: 'DELETE', path: '/v1/calls/:call', scope: 'read', reply: 'none', does: 'calls off a call that its caller named' },
  'tickets.create': { method: 'POST', path: '/v1/tickets', scope: 'run', reply: 'json', does: 'makes a ticket that opens one WebSocket, once and soon' },
  'templates.list': { method: 'GET', path: '/v1/templates', scope: 'read', reply: 'json', does: 'lists templates' },
  'templates.get': { method: 'GET', path: '/v1/templates/:template', scope: 'read', reply: 'json', does: 'tells what is in a template' },
  'keys.create': { method: 'POST', path: '/v1/keys', scope: 'admin', reply: 'json', creates: true, does: 'makes a key, which is shown once' },
  'keys.list': { method: 'GET', path: '/v1/keys', scope: 'admin', reply: 'json', does: 'lists keys, without what is secret of them' },
  'keys.revoke': { method: 'DELETE', path: '/v1/keys/:key', scope: 'admin', reply: 'json', does: 'revokes a key' },
  'tenants.create': { method: 'POST', path: '/v1/tenants', scope: 'admin', reply: 'json', creates: true, does: 'makes a tenant' },
  'tenants.list': { method: 'GET', path: '/v1/tenants', scope: 'admin', reply: 'json', does: 'lists tenants' },
  'tenants.get': { method: 'GET', path: '/v1/tenants/:tenant', scope: 'admin', reply: 'json', does: 'tells what a tenant may have' },
  'tenants.update': { method: 'PATCH', path: '/v1/tenants/:tenant', scope: 'admin', reply: 'json', does: 'changes what a tenant may have' },
  'tenants.remove': { method: 'DELETE', path: '/v1/tenants/:tenant', scope: 'admin', reply: 'json', does: 'removes a tenant with its keys' },
  'tenants.usage': { method: 'GET', path: '/v1/tenants/:tenant/usage', scope: 'admin', reply: 'json', does: 'tells what a tenant uses of its quotas' },
  'usage.own': { method: 'GET', path: '/v1/usage', scope: 'read', reply: 'json', does: "tells what the caller's tenant uses of its quotas" },
  'audit.list': { method: 'GET', path: '/v1/audit', scope: 'admin', reply: 'json', does: 'lists what was done' },
  'audit.tail': { method: 'GET', path: '/v1/audit/tail', scope: 'admin', reply: 'events', does: 'tells what is done from now on' },
  'audit.head': { method: 'GET', path: '/v1/audit/head', scope: 'admin', reply: 'json', does: 'the newest record, signed' },
  'audit.verify': { method: 'POST', path: '/v1/audit/verify', scope: 'admin', reply: 'json', does: 'looks whether anything of the trail was changed' },
  'audit.export': { method: 'GET', path: '/v1/audit/export', scope: 'admin', reply: 'bytes', does: 'the whole trail as lines of JSON' },
  'house.events': { method: 'GET', path: '/v1/events', scope: 'read', reply: 'events', does: "tells what happens to the tenant's sandboxes" },
  'house.probe': { method: 'GET', path: '/v1/probe', scope: 'admin', reply: 'json', does: 'tells what each driver can do on this machine' },
  'house.openapi': { method: 'GET', path: '/v1/openapi.json', scope: 'read', reply: 'json', does: 'this description' },
  'house.health': { method: 'GET', path: '/v1/health', scope: 'public', reply: 'json', does: 'tells that the server runs' },
  'house.ready': { method: 'GET', path: '/v1/ready', scope: 'public', reply: 'json', does: 'tells whether it takes work' },
  'house.metrics': { method: 'GET', path: '/v1/metrics', scope: 'admin', reply: 'text', does: 'figures for Prometheus' },
} as const satisfies Record<string, Route>

export const routes = { ...sandboxRoutes, ...programRoutes, ...fileRoutes, ...codeRoutes, ...placeRoutes, ...houseRoutes }
export type RouteName = keyof typeof routes

type PartsOf<Path extends string> = Path extends `${infer Head}/${infer Rest}` ? Head | PartsOf<Rest> : Path
type ParamOf<Part extends string> = Part extends `:${infer Name}` ? Name : Part extends '*' ? '*' : never

/** What stands for something in the path of a route. */
export type ParamsOf<Name extends RouteName> = Readonly<Record<ParamOf<PartsOf<(typeof routes)[Name]['path']>>, string>>

/** The path of a route with what it is asked for. */
export function pathOf(name: RouteName, params: Readonly<Record<string, string>>): string {
  return routes[name].path.replace(/:(\w+)|\*$/g, (match, param: string | undefined) => (match === '*' ? '' : encodeURIComponent(params[param ?? ''] ?? '')))
}
