import type { CodeEnding } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import type { CallOptions, Platform, SandboxInfo } from '../contract/platform.js'
import type { CreationOptions } from '../contract/platform-network.js'
import type { Fresh, OneShotNetwork } from '../contract/pools.js'
import type { SpecInput } from '../contract/spec.js'
import { type CodeOrder, CodeRun, type StartedCode } from './code.js'
import type { ReadFile } from './code-execution.js'
import { codeFields, type CodeOptions, codeOptionsRefusal, codeRequest } from './code-options.js'
import { SandboxFiles } from './files.js'
import { RunNetwork } from './one-shot-network.js'
import { callOptions, checkPlatform, sandboxRefusal } from './platform-check.js'

export interface PoolCodeOptions extends Omit<CodeOptions, 'context'>, Pick<CreationOptions, 'onRequest'> {}

export interface OneShotOptions extends PoolCodeOptions {
  /** What the sandbox is to be like. */
  readonly sandbox?: SpecInput
  /** Where it lives; the default platform of this process when not given. */
  readonly platform?: Platform
  /** `cell`, which is all that code can have so far: a cell that nobody has used. */
  readonly fresh?: Fresh
  /** False: it is created for this call, even where such are kept ready. */
  readonly pool?: boolean
}

/** Code in a sandbox of its own. */
export class OneShotCodeRun extends CodeRun {
  /** What it does by the network of its sandbox, where that has one. */
  readonly network: RunNetwork

  constructor(order: CodeOrder, network: RunNetwork) {
    super(order)
    this.network = network
  }
}

interface CodePlace {
  readonly platform: Platform
  readonly id: string
  readonly files: SandboxFiles
}

/** Of all artifacts of an execution whose sandbox is gone: so much of them is kept. */
const mostKeptBytes = 64 * 2 ** 20

export function runInSandbox(source: string, options: CodeOptions, place: CodePlace): CodeRun {
  const refusal = codeOptionsRefusal(options)
  if (refusal) return refused(refusal)
  return new CodeRun({ options, start: () => start(source, options, place) })
}

async function start(source: string, options: CodeOptions, { platform, id, files }: CodePlace): Promise<StartedCode> {
  const { signal } = options
  const { spec } = await platform.info(id, callOptions(signal))
  const execution = await platform.code.execute(id, codeRequest(source, options), callOptions(signal))
  return { execution, outputBytes: spec.limits.outputBytes, read: (path, how) => files.readBytes(path, how) }
}

const poolFields = [...codeFields.filter((name) => name !== 'context'), 'onRequest']
const oneShotFields = [...poolFields, 'sandbox', 'platform', 'fresh', 'pool']

/** In a sandbox of its own, of which nothing is left when it is over but what its artifacts hold. */
export function codeOnce(source: string, options: OneShotOptions, defaultPlatform: () => Platform): OneShotCodeRun {
  const refusal = codeOptionsRefusal(options, oneShotFields) ?? sandboxRefusal(options.sandbox)
  const { sandbox: spec = {}, platform, fresh, pool, ...own } = refusal ? {} : options
  const how = { ...(fresh !== undefined && { fresh }), ...(pool !== undefined && { pool }), language: own.language ?? 'python' }
  return codeAlone(source, own, async (call) => {
    if (refusal) throw refusal
    const place = checkPlatform(platform) ?? defaultPlatform()
    if (fresh === 'liner') throw linersForPrograms()
    return { platform: place, info: await place.pools.take(spec, { ...call, ...how }) }
  })
}

/** In a sandbox of a pool, which is nobody else's afterwards. */
export function codeInPool(source: string, options: PoolCodeOptions, { platform, id }: { readonly platform: Platform; readonly id: string }): OneShotCodeRun {
  const refusal = codeOptionsRefusal(options, poolFields)
  return codeAlone(source, refusal ? {} : options, async (call) => {
    if (refusal) throw refusal
    return { platform, info: await platform.pools.acquire(id, {}, call) }
  })
}

interface Taken {
  readonly platform: Platform
  readonly info: SandboxInfo
}

function codeAlone(source: string, { onRequest, ...options }: PoolCodeOptions, take: (call: CallOptions & CreationOptions) => Promise<Taken>): OneShotCodeRun {
  const network = new RunNetwork()
  const start = async (): Promise<StartedCode> => {
    const { platform, info } = await network.follow(take({ ...callOptions(options.signal), ...(onRequest !== undefined && { onRequest }) }), watched)
    return startOnce(source, options, { ...placeOf(platform, info.id), network })
  }
  return new OneShotCodeRun({ options, start }, network)
}

/** Begun before its code is. */
function watched({ platform, info }: Taken): OneShotNetwork | undefined {
  if (info.spec.network === false) return undefined
  return { log: platform.network.log(info.id), summary: () => platform.network.summary(info.id) }
}

/** The sandbox is this code's alone, and goes with it. */
async function startOnce(source: string, options: CodeOptions, place: CodePlace & { readonly network: RunNetwork }): Promise<StartedCode> {
  const kept = new Map<string, Uint8Array>()
  const release = async (): Promise<void> => place.network.conclude((await place.platform.pools.release(place.id)).network)
  try {
    const started = await start(source, options, place)
    return { ...started, read: readKept(kept, place.id), finish: (ending) => keepArtifacts(place, ending, kept).finally(release) }
  } catch (error) {
    await release()
    throw error
  }
}

function placeOf(platform: Platform, id: string): CodePlace {
  return { platform, id, files: new SandboxFiles({ files: platform.files.of(id), local: undefined }) }
}

function linersForPrograms(): SandboxError {
  return new SandboxError('unsupported', "fresh: 'liner' is for commands; code is run in a cell of its own", { hint: "fresh: 'cell'" })
}

async function keepArtifacts({ files }: CodePlace, ending: CodeEnding | undefined, kept: Map<string, Uint8Array>): Promise<void> {
  let room = mostKeptBytes
  for (const { path, size } of ending?.artifacts ?? []) {
    if (size > room) continue
    // What is gone or grew meanwhile is not kept.
    const bytes = await files.readBytes(path, { length: size }).catch(() => undefined)
    if (!bytes) continue
    kept.set(path, bytes)
    room -= bytes.length
  }
}

function readKept(kept: ReadonlyMap<string, Uint8Array>, id: string): ReadFile {
  return (path) => {
    const bytes = kept.get(path)
    if (bytes) return Promise.resolve(bytes)
    const why = `sandbox ${id} was closed with the execution, and of its artifacts no more than ${mostKeptBytes} bytes are kept`
    return Promise.reject(new SandboxError('closed', why, { hint: 'const sandbox = await Sandbox.create()' }))
  }
}

function refused(refusal: SandboxError): CodeRun {
  return new CodeRun({ options: {}, start: () => Promise.reject(refusal) })
}
