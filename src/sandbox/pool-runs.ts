import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import type { Platform } from '../contract/platform.js'
import type { CreationOptions } from '../contract/platform-network.js'
import type { Fresh, OneShot, OneShotPlace } from '../contract/pools.js'
import type { Command } from '../contract/run.js'
import type { SpecInput } from '../contract/spec.js'
import { RunNetwork } from './one-shot-network.js'
import { runOptionsRefusal, runRequest, withOwnNames } from './own-options.js'
import { callOptions, checkPlatform, sandboxRefusal } from './platform-check.js'
import { type Concluded, Run, type RunOrder } from './run.js'
import type { RunOptions } from './sandbox.js'

export interface PoolRunOptions extends RunOptions, Pick<CreationOptions, 'onRequest'> {
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

/** A run in a sandbox of its own. */
export class OneShotRun extends Run {
  /** What it does by the network of its sandbox, where that has one. */
  readonly network: RunNetwork

  constructor(order: RunOrder, network: RunNetwork) {
    super(order)
    this.network = network
  }
}

/** In a sandbox of its own, which is gone when it is over. */
export function runOnce(command: Command, options: RunOnceOptions, defaultPlatform: () => Platform): OneShotRun {
  const refusal =
    runOptionsRefusal(options, ['receipt', 'onRequest', 'sandbox', 'platform', 'fresh', 'pool']) ?? receiptRefusal(options) ?? sandboxRefusal(options.sandbox)
  if (refusal) return refused(refusal)
  const { sandbox = {}, platform, fresh, pool, ...own } = options
  const how = { ...(fresh !== undefined && { fresh }), ...(pool !== undefined && { pool }) }
  return runIn(command, own, { platform: () => checkPlatform(platform) ?? defaultPlatform(), place: { spec: sandbox }, how })
}

/** In a sandbox of a pool, which is nobody else's afterwards. */
export function runInPool(command: Command, options: PoolRunOptions, { platform, id }: { readonly platform: Platform; readonly id: string }): OneShotRun {
  const refusal = runOptionsRefusal(options, ['receipt', 'onRequest']) ?? receiptRefusal(options)
  if (refusal) return refused(refusal)
  return runIn(command, options, { platform: () => platform, place: { pool: id }, how: {} })
}

interface Where {
  readonly platform: () => Platform
  readonly place: OneShotPlace
  readonly how: { readonly fresh?: Fresh; readonly pool?: boolean }
}

function runIn(command: Command, { receipt, onRequest, ...options }: PoolRunOptions, { platform, place, how }: Where): OneShotRun {
  const { signal, stdin } = options
  const network = new RunNetwork()
  let shot: OneShot | undefined
  const order: RunOrder = {
    driver: () => shot?.sandbox.driver ?? '',
    stdin,
    start: async (mode) => {
      const call = { ...how, ...callOptions(signal), receipt: receipt === true, ...(onRequest !== undefined && { onRequest }) }
      const begin = async (): Promise<OneShot> => platform().pools.run(place, runRequest(command, options, mode), call)
      shot = await network.follow(withOwnNames(begin, { 'output.limit': 'output' }), (begun) => begun.network)
      return shot.program
    },
    conclude: async ({ isWhole }) => {
      const concluded = shot ? await concludedOf(shot, { withReceipt: isWhole && receipt === true }) : {}
      network.conclude(concluded.network)
      return concluded
    },
  }
  return new OneShotRun(order, network)
}

async function concludedOf(shot: OneShot, { withReceipt }: { readonly withReceipt: boolean }): Promise<Concluded> {
  let receipt: Concluded['receipt']
  try {
    receipt = withReceipt ? await shot.receipt() : undefined
  } catch (error) {
    await shot.release()
    throw error
  }
  return { ...(receipt && { receipt }), ...(await shot.release()) }
}

function receiptRefusal({ receipt }: PoolRunOptions): SandboxError | undefined {
  if (receipt === undefined || typeof receipt === 'boolean') return undefined
  return new SandboxError('invalid', `receipt: expected true or false, got ${kindOf(receipt)}`)
}

function refused(refusal: SandboxError): OneShotRun {
  const network = new RunNetwork()
  return new OneShotRun({ driver: () => '', stdin: undefined, start: () => network.follow(Promise.reject(refusal), () => undefined) }, network)
}
