/**
 * What a request passes, in this order: the name that the server was called by and the page that asks; the route; the key; what the key is for; the query and the
 * body; then a handler, which is given the platform as the key's tenant has it.
 */
import { setMaxListeners } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { SandboxError } from '../contract/errors.js'
import type { Platform } from '../contract/platform.js'
import { parseWith } from '../contract/refusal.js'
import { idSchema } from '../contract/spec.js'
import type { Actor } from '../contract/tenants.js'
import { media, wireHeaders } from '../contract/wire/media.js'
import type { RequestLine } from '../contract/wire/request-line.js'
import { type Answer, acceptedStream, sendAnswer, sendError, type StreamType } from './answers.js'
import { bodyPieces, type BodyBounds, BodyRoom, checkContentType, readJson } from './bodies.js'
import { type Call, type Handler, type Handlers, parseBody, parseQuery } from './call.js'
import type { Desk } from './desk.js'
import { Door, type DoorOptions, type Entered } from './door.js'
import { follow, type Following } from './following.js'
import { randomName } from './held.js'
import { asSandboxError, HttpError, statusOf } from './http-error.js'
import { Idempotency } from './idempotency.js'
import type { HouseParts } from './resources/house.js'
import { leaving } from './leaving.js'
import { passRequest } from './proxy.js'
import { type Match, Router } from './router.js'
import { checkScope } from './scopes.js'
import { actorOf, type Signing } from './signing.js'
import type { Standing } from './standing.js'

export interface RequestOptions extends Pick<HouseParts, 'house' | 'keys'> {
  readonly door: DoorOptions
  /** What a caller is who shows no key; not given: nobody. Only where nobody else can reach the server at all. */
  readonly trusted?: Actor
  readonly bounds?: Partial<BodyBounds>
  readonly log?: (line: RequestLine) => void
  /** What is done for a request is done within this: it may belong to a trace that its headers name. */
  readonly within?: <Result>(headers: IncomingMessage['headers'], act: () => Result) => Result
}

const usualBounds: BodyBounds = { mostJsonBytes: 24 * 2 ** 20, mostBytes: 2 ** 40, mostTenantBytes: 256 * 2 ** 20, idleMs: 60_000, jsonMs: 120_000 }

interface Asked {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly id: string
  readonly entered: Entered
  readonly match: Match
}

export interface RequestParts {
  readonly desk: Desk
  readonly handlers: Handlers
  readonly signing: Signing
  readonly standing: Standing
}

interface Facts {
  route: string
  actor?: Actor
  failure?: unknown
}

export class Requests {
  readonly desk: Desk
  readonly door: Door
  readonly router = new Router()
  readonly #options: RequestOptions
  readonly #bounds: BodyBounds
  readonly #handlers: Handlers
  readonly #signing: Signing
  readonly #standing: Standing
  readonly #idempotency = new Idempotency()
  readonly #room = new BodyRoom()
  readonly #stopping = new AbortController()

  constructor(options: RequestOptions, { desk, handlers, signing, standing }: RequestParts) {
    this.desk = desk
    this.door = new Door(options.door)
    this.#options = options
    this.#bounds = { ...usualBounds, ...options.bounds }
    this.#handlers = handlers
    this.#signing = signing
    this.#standing = standing
    // As many as there are streams of events.
    setMaxListeners(0, this.#stopping.signal)
  }

  /** Never rejects: what goes wrong is the answer, and in the log. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = randomName()
    const startedAt = performance.now()
    const facts: Facts = { route: '' }
    response.setHeader('glovebox-request', id)
    if (this.#stopping.signal.aborted) response.setHeader('connection', 'close')
    try {
      const pass = (): Promise<void> => this.#pass(request, response, { id, facts })
      await (this.#options.within?.(request.headers, pass) ?? pass())
    } catch (error) {
      facts.failure = error
      // What was not read of the request is not waited for.
      if (!request.complete && !response.headersSent) response.setHeader('connection', 'close')
      sendError(response, error)
    } finally {
      this.#log(facts, { id, ms: performance.now() - startedAt, method: request.method ?? '', status: response.statusCode })
    }
  }

  /** Nothing new is taken from now on, and streams that only tell of what happens end. */
  stop(): void {
    this.#stopping.abort(new SandboxError('closed', 'the server stops'))
  }

  /** Throws SandboxError('unauthorized'), the same whatever is wrong with the key. */
  async authenticate(request: IncomingMessage): Promise<Actor> {
    const { authorization } = request.headers
    const { trusted, keys } = this.#options
    if (authorization === undefined && trusted) return trusted
    const [, secret] = /^Bearer ([\x21-\x7e]{1,500})$/i.exec(authorization ?? '') ?? []
    if (secret === undefined) throw new HttpError(401, 'a key is needed', { hint: 'glovebox keys create' })
    const source = request.socket.remoteAddress
    return keys.authenticate(secret, source === undefined ? {} : { source })
  }

  /** As this actor has it, or as another tenant has it that an admin names. */
  platformOf(actor: Actor, request: IncomingMessage, id: string): Promise<Platform> {
    const tenant = request.headers['glovebox-tenant']
    if (Array.isArray(tenant)) throw new HttpError(400, 'glovebox-tenant: stands twice')
    return this.#options.house.platformFor(actor, { request: id, ...(tenant !== undefined && { tenant }) })
  }

  find(method: string, path: string): Match {
    const match = this.router.match(method, path)
    if (!match) throw new HttpError(404, 'path: there is no such route', { hint: 'curl $GLOVEBOX_URL/v1/openapi.json' })
    return match
  }

  async #pass(request: IncomingMessage, response: ServerResponse, { id, facts }: { readonly id: string; readonly facts: Facts }): Promise<void> {
    const entered = this.door.enter(request)
    // Whom its answers are for is then the program's to say.
    if (entered.label !== undefined) return this.#passByName(request, response, { id, facts, label: entered.label })
    if (this.door.answerOrigin(request, response)) return
    const match = this.find(entered.method, entered.path)
    facts.route = match.name
    const { scope } = match.route
    if (scope === 'public' || scope === 'signed') return this.#answer({ request, response, id, entered, match }, nobody)
    const actor = await this.authenticate(request)
    facts.actor = actor
    if (this.#stopping.signal.aborted) throw new SandboxError('unavailable', 'the server stops, and takes nothing new')
    checkScope(actor, scope)
    return this.#answer({ request, response, id, entered, match }, actor)
  }

  /** A port that has a name of its own: all below it is the program's. */
  async #passByName(request: IncomingMessage, response: ServerResponse, { id, facts, label }: ByName): Promise<void> {
    facts.route = 'ports.byName'
    const grant = await this.#signing.openLabel(label)
    const actor = actorOf(grant)
    facts.actor = actor
    const { signal, done } = this.#follow({ request, response }, actor)
    try {
      const platform = await this.#options.house.platformFor(actor, { request: id })
      const where = { platform, sandbox: grant.sandbox, port: grant.port ?? 0, path: request.url ?? '/' }
      await passRequest(request, response, { ...where, isBeside: false, isKeyOurs: false, signal })
    } finally {
      done()
    }
  }

  async #answer(asked: Asked, actor: Actor): Promise<void> {
    const { request, response, match, entered, id } = asked
    checkIds(match)
    const stream = streamFor(request, match)
    const query = parseQuery(match.name, match.route.takes === 'raw' ? '' : entered.search)
    checkContentType(request, match.route)
    const reading = { bounds: this.#bounds, room: this.#room, tenant: actor.tenant }
    const body = match.route.takes === undefined ? parseBody(match.name, await readJson(request, reading)) : undefined
    const { signal, gone, onBehalfOf, done } = this.#follow(asked, actor)
    try {
      const platform = match.route.scope === 'public' || match.route.scope === 'signed' ? noPlatform : await this.platformOf(actor, request, id)
      const pieces = until(bodyPieces(request, this.#bounds), gone)
      const own = { signal, gone, onBehalfOf, stream, pieces, request, response, requestId: id }
      const answer = await this.#made({ name: match.name, params: match.params, query, body, actor, platform, ...own } as Call, asked)
      // What it has come to meanwhile is for nobody whose key holds no more.
      if (!response.destroyed) gone.throwIfAborted()
      const told = answer.kind === 'events' && match.route.reply === 'events' ? { ...answer, events: until(answer.events, this.#stopping.signal) } : answer
      await sendAnswer(response, told, { stream, gone })
    } finally {
      done()
    }
  }

  /** Once for an `Idempotency-Key`, where there is one. */
  #made(call: Call, { match, entered, request }: Asked): Promise<Answer> {
    const make = (): Promise<Answer> => (this.#handlers[match.name] as Handler<typeof match.name>)(call)
    const key = request.headers[wireHeaders.idempotency]
    if (!match.route.creates || key === undefined) return make()
    // A stream is told once: the second who asks would be told the rest of it.
    if (call.stream !== undefined) throw new HttpError(400, 'idempotency-key: is for answers that come as a whole')
    const asked = [match.name, entered.path, entered.search, call.body]
    // An admin may ask the same for another tenant.
    const tenant = `${call.actor.tenant} ${String(request.headers['glovebox-tenant'] ?? '')}`
    return this.#idempotency.run({ tenant, key: String(key), asked, isSecret: match.name === 'keys.create' }, make)
  }

  #follow({ request, response }: Pick<Asked, 'request' | 'response'>, actor: Actor): Following {
    const following = follow(request, response, { desk: this.desk, standing: this.#standing })
    following.onBehalfOf(actor)
    return following
  }

  #log({ route, actor, failure }: Facts, { id, ms, method, status }: { id: string; ms: number; method: string; status: number }): void {
    const known = failure === undefined ? undefined : asSandboxError(failure)
    this.#options.log?.({
      at: new Date().toISOString(),
      request: id,
      method: method.slice(0, 10),
      route,
      status: known ? statusOf(known) : status,
      ms: Math.round(ms * 10) / 10,
      ...(actor && { tenant: actor.tenant, key: actor.key }),
      ...(known && { error: known.code }),
      ...(known && known !== failure && { defect: failure instanceof Error ? (failure.stack ?? failure.message) : String(failure) }),
    })
  }
}

interface ByName {
  readonly id: string
  readonly facts: Facts
  readonly label: string
}

/** Once it is known who asks: what cannot be an id is no id of anything. */
export function checkIds({ params }: Match): void {
  for (const name of ['id', 'pool']) if (params[name] !== undefined) parseWith(idSchema, params[name], name)
}

/** The same, ended by the reason of the signal. */
async function* until<Item>(source: AsyncIterable<Item>, signal: AbortSignal): AsyncGenerator<Item, void, undefined> {
  yield* leaving(source, signal)
  signal.throwIfAborted()
}

const nobody: Actor = { key: '', tenant: '', scopes: [] }
/** Of routes that ask nothing of one. */
const noPlatform = {} as Platform

/** What the answer is sent as, where it is one that comes piece by piece. */
function streamFor({ headers }: IncomingMessage, { route }: Match): StreamType | undefined {
  if (route.reply === 'result') return acceptedStream(headers.accept)
  if (route.reply === 'bytes') return acceptedStream(headers.accept) === media.frames ? media.frames : undefined
  return route.reply === 'events' ? (acceptedStream(headers.accept) ?? media.ndjson) : undefined
}
