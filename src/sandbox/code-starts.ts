import type { CodeEnding } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import type { Platform } from '../contract/platform.js'
import type { Fresh } from '../contract/pools.js'
import type { SpecInput } from '../contract/spec.js'
import { CodeRun, type StartedCode } from './code.js'
import type { ReadFile } from './code-execution.js'
import { codeFields, type CodeOptions, codeOptionsRefusal, codeRequest } from './code-options.js'
import { SandboxFiles } from './files.js'
import { callOptions, checkPlatform, sandboxRefusal } from './platform-check.js'

export interface OneShotOptions extends Omit<CodeOptions, 'context'> {
  /** What the sandbox is to be like. */
  readonly sandbox?: SpecInput
  /** Where it lives; the default platform of this process when not given. */
  readonly platform?: Platform
  /** `cell`, which is all that code can have so far: a cell that nobody has used. */
  readonly fresh?: Fresh
  /** False: it is created for this call, even where such are kept ready. */
  readonly pool?: boolean
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

const oneShotFields = [...codeFields.filter((name) => name !== 'context'), 'sandbox', 'platform', 'fresh', 'pool']

/** In a sandbox of its own, of which nothing is left when it is over but what its artifacts hold. */
export function codeOnce(source: string, options: OneShotOptions, defaultPlatform: () => Platform): CodeRun {
  const refusal = codeOptionsRefusal(options, oneShotFields) ?? sandboxRefusal(options.sandbox)
  if (refusal) return refused(refusal)
  const { sandbox: spec = {}, platform, fresh, pool, ...own } = options
  const call = { ...(fresh !== undefined && { fresh }), ...(pool !== undefined && { pool }), ...callOptions(options.signal) }
  return new CodeRun({
    options: own,
    start: async () => {
      const place = checkPlatform(platform) ?? defaultPlatform()
      if (fresh === 'liner') throw linersForPrograms()
      const { id } = await place.pools.take(spec, { ...call, language: own.language ?? 'python' })
      return startOnce(source, own, placeOf(place, id))
    },
  })
}

/** The sandbox is this code's alone, and goes with it. */
export async function startOnce(source: string, options: CodeOptions, place: CodePlace): Promise<StartedCode> {
  const kept = new Map<string, Uint8Array>()
  try {
    const started = await start(source, options, place)
    return { ...started, read: readKept(kept, place.id), finish: (ending) => keepAndRelease(place, ending, kept) }
  } catch (error) {
    await place.platform.pools.release(place.id)
    throw error
  }
}

export function placeOf(platform: Platform, id: string): CodePlace {
  return { platform, id, files: new SandboxFiles({ files: platform.files.of(id), local: undefined }) }
}

function linersForPrograms(): SandboxError {
  return new SandboxError('unsupported', "fresh: 'liner' is for commands; code is run in a cell of its own", { hint: "fresh: 'cell'" })
}

async function keepAndRelease({ platform, id, files }: CodePlace, ending: CodeEnding | undefined, kept: Map<string, Uint8Array>): Promise<void> {
  try {
    let room = mostKeptBytes
    for (const { path, size } of ending?.artifacts ?? []) {
      if (size > room) continue
      // What is gone or grew meanwhile is not kept.
      const bytes = await files.readBytes(path, { length: size }).catch(() => undefined)
      if (!bytes) continue
      kept.set(path, bytes)
      room -= bytes.length
    }
  } finally {
    await platform.pools.release(id)
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
