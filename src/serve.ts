/** Beside compose.ts, for `glovebox serve`: the ledger, the house above it and the server before it; and what a server must be told before others can reach it. */
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, unwatchFile, watchFile } from 'node:fs'
import { connect, isIP } from 'node:net'
import { resolve } from 'node:path'
import { keepNote, policyInForce, templateBuilder } from './compose.js'
import { SandboxError } from './contract/errors.js'
import type { PolicyInput, PresetName } from './contract/policy.js'
import type { Driver } from './contract/driver.js'
import type { House } from './contract/tenants.js'
import { type Ledger, localActor, openHouse, openLedger } from './ledger.js'
import type { Allowance } from './server/remote-spec.js'
import { checkTls, GloveboxServer, type ListenAt, type TlsOptions } from './server/server.js'
import { createHouseWatch, type HouseWatch } from './watch/house-watch.js'
import { createLogger, type LogTarget } from './watch/logger.js'
import { tracingEndpoint } from './watch/tracing-endpoint.js'

export interface ServeOptions {
  readonly at: ListenAt
  /** Paths of PEM files; read again when they change. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly clientCa?: string }
  /** Names that it may be called by beside its own address. */
  readonly hosts?: readonly string[]
  readonly origins?: readonly string[]
  readonly domain?: string
  /** Where keys, tenants and the audit trail are kept, instead of the usual place. */
  readonly state?: string
  /** Another address than the loopback's is served without TLS. */
  readonly insecure?: boolean
  /** The operator's, beside that of the environment. */
  readonly policy?: PresetName | PolicyInput
  /** Whoever can open the socket is the machine's own user, and may have whatever that has. Only of a socket. */
  readonly trustsSocket?: boolean
  /** Where lines of JSON go, one for each request; not given: nowhere. */
  readonly log?: LogTarget
  readonly drivers?: readonly Driver[]
}

export interface Serving {
  readonly url: string
  /** Whether there is a key that could be used. */
  readonly hasKeys: boolean
  /** What is under way may end within the grace. Idempotent. */
  close(options?: { readonly graceMs?: number }): Promise<void>
}

/** Listens, or throws why it may not. Nothing is left when it throws. */
export async function startServing(options: ServeOptions): Promise<Serving> {
  const { at, policy, drivers } = options
  checkExposure(options)
  await clearSocket(at)
  const watch = await openWatch(options.log)
  const opened: AsyncDisposable[] = [watch]
  const closeAll = async (): Promise<void> => {
    for (const part of opened.reverse()) await part[Symbol.asyncDispose]()
  }
  try {
    const onAppended = (ms: number): void => watch.appended(ms)
    const ledger = await openLedger({ onAppended, ...(options.state !== undefined && { folder: resolve(options.state) }) })
    opened.push(ledger)
    const hasKeys = (await ledger.keys.list({}, { limit: 1 })).items.length > 0
    if (!isLocal(at) && !hasKeys)
      throw new SandboxError('invalid', 'listen: another address than the loopback needs a key first', { hint: 'glovebox keys create' })
    const house = await openHouse(ledger, { watch, ...(policy !== undefined && { policy }), ...(drivers && { drivers }) })
    opened.push(house)
    const server = serverOf(options, { house, ledger, watch })
    opened.push(noteSocket(at))
    const { url } = await listenPrivately(server, at)
    const unwatch = watchTls(options.tls, server)
    let closed: Promise<void> | undefined
    const close = async (grace: { readonly graceMs?: number }): Promise<void> => {
      unwatch()
      await server.close(grace)
      await closeAll()
    }
    return { url, hasKeys, close: (grace = {}) => (closed ??= close(grace)) }
  } catch (error) {
    await closeAll()
    throw error
  }
}

/** Spans are sent where the environment says, as everywhere. */
async function openWatch(log: LogTarget | undefined): Promise<HouseWatch> {
  const endpoint = tracingEndpoint(process.env)
  const { redactText } = await import('./audit/redact.js')
  const tracing = endpoint === undefined ? undefined : await (await import('./watch/tracing.js')).openTracing({ endpoint })
  return createHouseWatch({
    openDescriptors,
    ...(log && { logger: createLogger({ target: log, redact: redactText }) }),
    ...(tracing && { tracing }),
  })
}

/**
 * What nobody caught is a defect of ours, told in the log; it does not end the sandboxes of everyone. What acts do is in the trail before, whatever comes of them. For a process that does
 * nothing else than to serve.
 */
export async function outliveStrays(target: LogTarget): Promise<Disposable> {
  const { redactText } = await import('./audit/redact.js')
  const logger = createLogger({ target, redact: redactText })
  const onStray = (error: unknown, origin: string): void =>
    logger.error('nobody caught this', { origin, defect: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  process.on('uncaughtException', onStray)
  return { [Symbol.dispose]: () => process.off('uncaughtException', onStray) }
}

function openDescriptors(): number | undefined {
  try {
    // One of them is what they are read by.
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    return undefined
  }
}

interface ServedParts {
  readonly house: House
  readonly ledger: Ledger
  readonly watch: HouseWatch
}

function serverOf(options: ServeOptions, { house, ledger, watch }: ServedParts): GloveboxServer {
  const { at, tls, hosts = [], origins = [], domain, policy, trustsSocket = false } = options
  const isTrusted = trustsSocket && 'socket' in at
  const own = 'socket' in at || isIP(at.host) === 0 ? [] : [isIP(at.host) === 6 ? `[${at.host}]` : at.host]
  return new GloveboxServer({
    house,
    keys: ledger.keys,
    tenants: ledger.tenants,
    quotas: ledger.quotas,
    audit: ledger.trail,
    templates: templateBuilder(),
    version: readVersion(),
    door: { hosts: [...own, ...hosts], origins, ...(domain !== undefined && { domain }) },
    allowed: isTrusted ? 'everything' : allowanceOf(policy),
    ...(isTrusted && { trusted: localActor }),
    ...(tls && { tls: readTls(tls) }),
    metrics: (accept) => watch.metrics(accept),
    log: (line) => watch.answered(line),
    within: (headers, act) => watch.within(headers, act),
  })
}

/** What the operator's policy says in so many words; what it is silent about is not for callers. */
function allowanceOf(policy: ServeOptions['policy']): Allowance {
  const { ceiling } = policyInForce(policy)
  return { mounts: ceiling.mounts !== undefined, seccomp: ceiling.seccomp === 'custom', drivers: ceiling.drivers ?? [] }
}

function isLocal(at: ListenAt): boolean {
  return 'socket' in at || at.host === '::1' || at.host === 'localhost' || /^127\.\d+\.\d+\.\d+$/.test(at.host)
}

/** Before anything is opened: what travels over a network in the clear is everyone's. */
function checkExposure({ at, tls, insecure = false }: ServeOptions): void {
  if ('socket' in at && tls) throw new SandboxError('invalid', 'tls: is for addresses; a socket is reached by nobody else')
  if (isLocal(at) || tls || insecure) return
  throw new SandboxError('invalid', 'listen: another address than the loopback needs a certificate', {
    hint: 'glovebox serve --listen ADDRESS:PORT --tls-cert FILE --tls-key FILE',
  })
}

/** One that an earlier server left is nobody's; one that answers is somebody's. */
async function clearSocket(at: ListenAt): Promise<void> {
  if (!('socket' in at)) return
  const found = statSync(at.socket, { throwIfNoEntry: false })
  if (!found) return
  if (!found.isSocket()) throw new SandboxError('conflict', `socket: ${at.socket} is there, and no socket`)
  if (await answers(at.socket)) throw new SandboxError('conflict', `socket: somebody serves at ${at.socket}`)
  rmSync(at.socket)
}

/** By which `glovebox gc` finds the socket of a server that was killed. */
function noteSocket(at: ListenAt): AsyncDisposable {
  const note = 'socket' in at ? keepNote('socket', resolve(at.socket)) : undefined
  return { [Symbol.asyncDispose]: () => Promise.resolve(note?.[Symbol.dispose]()) }
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** A socket is its owner's alone from the moment that it is there. */
async function listenPrivately(server: GloveboxServer, at: ListenAt): Promise<{ readonly url: string }> {
  const before = 'socket' in at ? process.umask(0o177) : undefined
  try {
    return await server.listen(at)
  } finally {
    if (before !== undefined) process.umask(before)
    if ('socket' in at) chmodSync(at.socket, 0o600)
  }
}

type TlsFiles = NonNullable<ServeOptions['tls']>

function readTls({ cert, key, clientCa }: TlsFiles): TlsOptions {
  const read = (path: string, flag: string): string => {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      throw new SandboxError('invalid', `${flag}: ${path} cannot be read`, { cause: error })
    }
  }
  const options: TlsOptions = {
    cert: read(cert, 'tls-cert'),
    key: read(key, 'tls-key'),
    minVersion: 'TLSv1.2',
    ...(clientCa !== undefined && { ca: read(clientCa, 'client-ca'), requestCert: true }),
  }
  try {
    checkTls(options)
  } catch (error) {
    throw new SandboxError('invalid', `tls-cert: ${cert} and ${key} are no certificate and its key`, {
      cause: error,
      hint: `openssl x509 -noout -text -in ${cert}`,
    })
  }
  return options
}

const lookEveryMs = 2000

/** A pair that does not fit together is half of a change: what held goes on, and the next look tries again. */
function watchTls(files: TlsFiles | undefined, server: GloveboxServer): () => void {
  if (!files) return () => undefined
  const paths = [files.cert, files.key, ...(files.clientCa === undefined ? [] : [files.clientCa])]
  const renew = (): void => {
    try {
      server.renewTls(readTls(files))
    } catch {
      // The other file follows.
    }
  }
  for (const path of paths) watchFile(path, { interval: lookEveryMs, persistent: false }, renew)
  return () => {
    for (const path of paths) unwatchFile(path, renew)
  }
}

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return (manifest as { readonly version: string }).version
}
