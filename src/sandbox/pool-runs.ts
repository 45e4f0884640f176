import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import type { Platform } from '../contract/platform.js'
import type { Fresh, OneShot, OneShotPlace } from '../contract/pools.js'
import type { Command } from '../contract/run.js'
import type { SpecInput } from '../contract/spec.js'
import { runOptionsRefusal, runRequest, withOwnNames } from './own-options.js'
import { callOptions, checkPlatform, sandboxRefusal } from './platform-check.js'
import { Run, type RunResult } from './run.js'
import type { RunOptions } from './sandbox.js'

export interface PoolRunOptions extends RunOptions {
  /** True: the result holds the receipt of what the command was run in. */
  readonly receipt?: boolean
}

export interface RunOnceOptions extends PoolRunOptions {
  /** What the sandbox is to be like. */
  readonly sandbox?: SpecInput
  /** Where it lives; the default platform of this process when not given. */
  readonly platform?: Platform
  /** `liner`: fresh namespaces for this run inside a cell that others had theirs in before. `cell`: a cell that nobody has used. Unless given, a liner where there can be one. */
  readonly fresh?: Fresh
  /** False: it is created for this call, even where such are kept ready. */
  readonly pool?: boolean
}

/** In a sandbox of its own, which is gone when it is over. */
export function runOnce(command: Command, options: RunOnceOptions, defaultPlatform: () => Platform): Run {
  const refusal = runOptionsRefusal(options, ['receipt', 'sandbox', 'platform', 'fresh', 'pool']) ?? receiptRefusal(options) ?? sandboxRefusal(options.sandbox)
  if (refusal) return refused(refusal)
  const { sandbox = {}, platform, fresh, pool, ...own } = options
  const how = { ...(fresh !== undefined && { fresh }), ...(pool !== undefined && { pool }) }
  return runIn(command, own, { platform: () => checkPlatform(platform) ?? defaultPlatform(), place: { spec: sandbox }, how })
}

/** In a sandbox of a pool, which is nobody else's afterwards. */
export function runInPool(command: Command, options: PoolRunOptions, { platform, id }: { readonly platform: Platform; readonly id: string }): Run {
  const refusal = runOptionsRefusal(options, ['receipt']) ?? receiptRefusal(options)
  if (refusal) return refused(refusal)
  return runIn(command, options, { platform: () => platform, place: { pool: id }, how: {} })
}

interface Where {
  readonly platform: () => Platform
  readonly place: OneShotPlace
  readonly how: { readonly fresh?: Fresh; readonly pool?: boolean }
}

function runIn(command: Command, { receipt, ...options }: PoolRunOptions, { platform, place, how }: Where): Run {
  const { signal, stdin } = options
  let shot: OneShot | undefined
  return new Run({
    driver: () => shot?.sandbox.driver ?? '',
    stdin,
    start: async (mode) => {
      const begin = (): Promise<OneShot> => platform().pools.run(place, runRequest(command, options, mode), { ...how, ...callOptions(signal) })
      shot = await withOwnNames(begin, { 'output.limit': 'output' })
      return shot.program
    },
    conclude: ({ isWhole }) => (shot ? concluded(shot, { withReceipt: isWhole && receipt === true }) : Promise.resolve({})),
  })
}

async function concluded(shot: OneShot, { withReceipt }: { readonly withReceipt: boolean }): Promise<Pick<RunResult, 'receipt'>> {
  try {
    return withReceipt ? { receipt: await shot.receipt() } : {}
  } finally {
    await shot.release()
  }
}

function receiptRefusal({ receipt }: PoolRunOptions): SandboxError | undefined {
  if (receipt === undefined || typeof receipt === 'boolean') return undefined
  return new SandboxError('invalid', `receipt: expected true or false, got ${kindOf(receipt)}`)
}

function refused(refusal: SandboxError): Run {
  return new Run({ driver: () => '', stdin: undefined, start: () => Promise.reject(refusal) })
}
