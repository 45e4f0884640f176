import { checkCallOptions } from '../contract/call-options.js'
import { languageSchema } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import { freshKinds, type OneShotCall, type OneShotRunCall, type PoolSettings } from '../contract/pools.js'
import type { RunRequest } from '../contract/run.js'
import type { Spec } from '../contract/spec.js'
import { parseWith } from '../policy/refusal.js'
import { checkJudge } from './creation.js'

/** Throws SandboxError('invalid') naming the option. */
export function checkOneShotRun(options: OneShotRunCall): OneShotRunCall {
  const call = checkOneShot(options, ['after', 'afterIfConfined'])
  // They may be rejected before they are waited for, where it is told.
  for (const each of [call.after, call.afterIfConfined]) each?.catch(() => undefined)
  return call
}

/** What is to be fulfilled before the program runs. */
export function waitOf({ after, afterIfConfined = after }: OneShotRunCall, { network, mounts }: Spec): Promise<unknown> | undefined {
  return network === false && mounts.length === 0 ? afterIfConfined : after
}

/** Throws SandboxError('invalid') naming the option. */
export function checkOneShot<Call extends OneShotCall>(options: Call, more: readonly (keyof Call)[] = []): Call {
  const { fresh, pool, language, onRequest } = checkCallOptions(options, ['signal', 'onRequest', 'fresh', 'pool', 'language', 'receipt', ...more])
  checkJudge(onRequest)
  if (fresh !== undefined && !freshKinds.includes(fresh)) {
    throw new SandboxError('invalid', `fresh: expected one of ${freshKinds.map((kind) => `'${kind}'`).join(', ')}`)
  }
  if (pool !== undefined && typeof pool !== 'boolean') throw new SandboxError('invalid', `pool: expected true or false, got ${kindOf(pool)}`)
  if (fresh === 'liner' && pool === false) throw new SandboxError('invalid', "pool: cannot be false with fresh: 'liner', which is in a cell that is kept")
  if (language !== undefined) parseWith(languageSchema, language, 'language')
  return options
}

/** Throws SandboxError('invalid') naming what does not go with the rest. */
export function checkSettings({ size, max, fresh, imports, recycleAfterRuns, language }: PoolSettings): void {
  if (size !== undefined && max !== undefined && size > max) throw new SandboxError('invalid', `size: ${size} is above max, which is ${max}`)
  if (fresh === 'liner') {
    if (language !== undefined) throw new SandboxError('invalid', "language: is only for a pool with fresh: 'cell'; code is run in a cell of its own")
    return
  }
  if (recycleAfterRuns !== undefined) throw new SandboxError('invalid', "recycleAfterRuns: is only for a pool with fresh: 'liner'")
  if (imports !== undefined && language !== undefined) throw new SandboxError('invalid', 'imports: do not go with language; code imports what it needs')
}

type LinedFields = Pick<Spec, 'root' | 'commands' | 'mounts' | 'seccomp' | 'user'>

/** What of a sandbox no run in a liner can have; undefined when it can have all of it. */
export function unlinedField({ root, commands, mounts, seccomp, user }: LinedFields): string | undefined {
  const wished = {
    root: root === 'overlay',
    commands: commands !== undefined,
    mounts: mounts.length > 0,
    seccomp: seccomp !== undefined,
    user: user === 'root',
  }
  return Object.entries(wished).find(([, isWished]) => isWished)?.[0]
}

/** Throws SandboxError('unsupported') naming what no run in a liner can have. */
export function checkLined(spec: LinedFields): void {
  const field = unlinedField(spec)
  if (field !== undefined) throw new SandboxError('unsupported', `${field}: a run in a liner cannot have it`, { hint: "fresh: 'cell'" })
}

/** Whether a run in a liner can be so; what is no request at all is told wherever it is run. */
export function isLinable(request: unknown): boolean {
  const { terminal, background, user } = (typeof request === 'object' && request !== null ? request : {}) as Partial<RunRequest>
  return terminal === undefined && !background && user !== 'root'
}

export function noLiners(why: string): SandboxError {
  return new SandboxError('unsupported', `fresh: 'liner' cannot be had here: ${why}`, { hint: "fresh: 'cell'" })
}

export function tooMany(count: number): SandboxError {
  return new SandboxError('busy', `there are ${count} sandboxes; no more are allowed at once`)
}
