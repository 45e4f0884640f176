import type { CodeEnding } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import type { Platform } from '../contract/platform.js'
import type { SpecInput } from '../contract/spec.js'
import { CodeRun, type StartedCode } from './code.js'
import type { ReadFile } from './code-execution.js'
import { codeFields, type CodeOptions, codeOptionsRefusal, codeRequest } from './code-options.js'
import type { SandboxFiles } from './files.js'
import { callOptions } from './platform-check.js'
import type { CreateOptions, Sandbox } from './sandbox.js'

export interface OneShotOptions extends Omit<CodeOptions, 'context'> {
  /** What the sandbox is to be like. */
  readonly sandbox?: SpecInput
  /** Where it lives; the default platform of this process when not given. */
  readonly platform?: Platform
}

export interface CodePlace {
  readonly platform: Platform
  readonly id: string
  readonly files: SandboxFiles
}

export interface OneShotMakers {
  readonly create: (spec: CreateOptions) => Promise<Sandbox>
  readonly place: (sandbox: Sandbox) => CodePlace
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

/** In a sandbox of its own, of which nothing is left when it is over but what its artifacts hold. */
export function runOnce(source: string, options: OneShotOptions, { create, place }: OneShotMakers): CodeRun {
  const refusal = codeOptionsRefusal(options, [...codeFields.filter((name) => name !== 'context'), 'sandbox', 'platform'])
  if (refusal) return refused(refusal)
  const { sandbox: spec = {}, platform, ...own } = options
  const about = { ...(platform && { platform }), ...callOptions(options.signal) }
  return new CodeRun({
    options: own,
    start: async () => {
      const sandbox = await create({ ...spec, ...about })
      try {
        const kept = new Map<string, Uint8Array>()
        const started = await start(source, own, place(sandbox))
        return { ...started, read: readKept(kept, sandbox.id), finish: (ending) => keepAndClose(sandbox, ending, kept) }
      } catch (error) {
        await sandbox.close()
        throw error
      }
    },
  })
}

async function keepAndClose(sandbox: Sandbox, ending: CodeEnding | undefined, kept: Map<string, Uint8Array>): Promise<void> {
  try {
    let room = mostKeptBytes
    for (const { path, size } of ending?.artifacts ?? []) {
      if (size > room) continue
      // What is gone or grew meanwhile is not kept.
      const bytes = await sandbox.files.readBytes(path, { length: size }).catch(() => undefined)
      if (!bytes) continue
      kept.set(path, bytes)
      room -= bytes.length
    }
  } finally {
    await sandbox.close()
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
