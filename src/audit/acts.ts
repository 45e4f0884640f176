/** One actor's acts on a platform: whether its scopes include them, their records before their effects, and how they ended. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Appended, AuditAct, AuditEntry, AuditSettings, AuditTrail } from '../contract/audit.js'
import { SandboxError } from '../contract/errors.js'
import type { Json } from '../contract/posture.js'
import { type Actor, type Scope, includesScope } from '../contract/tenants.js'

export interface Doer {
  readonly trail: AuditTrail
  readonly actor: Actor
  /** Whose sandboxes they are: the actor's own tenant, or another that an admin named. */
  readonly tenant: string
  readonly settings: AuditSettings
  /** What all records of one request have in common. */
  readonly request?: string
  /** The agent that a sandbox serves, as far as it is known here. */
  readonly agentOf: (sandbox: string) => string | undefined
}

export interface ActFacts {
  readonly sandbox?: string
  readonly agent?: string | undefined
  readonly details?: Readonly<Record<string, Json>>
}

type Ending = Pick<AuditEntry, 'sandbox' | 'receipt' | 'details'>

/** What was begun and is told to be over once. */
export interface Begun {
  /** For whoever does not wait for it. */
  ok(ending?: Ending): void
  /** Resolves when that is on the disk. */
  told(ending?: Ending): Promise<unknown>
  failed(error: unknown): void
}

/** Nobody waits longer for a disk that has no room. */
const mostWaitMs = 2000

export class Acts {
  readonly #doer: Doer

  constructor(doer: Doer) {
    this.#doer = doer
  }

  get settings(): AuditSettings {
    return this.#doer.settings
  }

  /** Throws SandboxError('forbidden'). */
  check(scope: Scope): void {
    const { scopes } = this.#doer.actor
    if (includesScope(scopes, scope)) return
    throw new SandboxError('forbidden', `this key has the scopes ${scopes.join(', ')}, and this needs ${scope}`, {
      hint: `glovebox keys create --scope ${scope}`,
    })
  }

  /** For what only looks: nothing is written down. */

  async seeing<T>(effect: () => Promise<T>): Promise<T> {
    this.check('read')
    return effect()
  }

  /** The same for what is looked at bit by bit. */
  following<T>(effect: () => AsyncIterable<T>): AsyncIterable<T> {
    this.check('read')
    return effect()
  }

  /** Its record is on the disk before it is done. */
  async doing<T>(
    act: AuditAct,
    facts: ActFacts,
    { effect, ending }: { readonly effect: () => Promise<T>; readonly ending?: (result: T) => Ending },
  ): Promise<T> {
    const begun = await this.begin(act, facts)
    return this.#through(begun, effect, ending)
  }

  /** The same of what has a name only once it is there: whoever is told the name finds it in the trail. */
  async making<T>(
    act: AuditAct,
    facts: ActFacts,
    { effect, ending }: { readonly effect: () => Promise<T>; readonly ending: (result: T) => Ending },
  ): Promise<T> {
    const begun = await this.begin(act, facts)
    let told: Promise<unknown> = Promise.resolve()
    const result = await this.#through({ ...begun, ok: (ended) => void (told = begun.told(ended)) }, effect, ending)
    await Promise.race([told, sleep(mostWaitMs, undefined, { ref: false })])
    return result
  }

  /** What must be possible when nothing can be written any more: closing what fills the disk, say. Its record is then kept until it can be. */
  async doingAnyway<T>(
    act: AuditAct,
    facts: ActFacts,
    { effect, ending }: { readonly effect: () => Promise<T>; readonly ending?: (result: T) => Ending },
  ): Promise<T> {
    this.check('run')
    const entry = this.#entry(act, facts)
    const appended = await this.#doer.trail.append(entry).catch((error: unknown) => {
      if (!(error instanceof SandboxError) || error.code === 'internal') throw error
      return undefined
    })
    if (appended) return this.#through(this.#begun(appended), effect, ending)
    void this.#later(this.#doer.trail.tell({ ...entry, details: { ...entry.details, isLate: true } }))
    return effect()
  }

  async begin(act: AuditAct, facts: ActFacts, onWritten?: () => void): Promise<Begun> {
    this.check('run')
    return this.#begun(await this.#doer.trail.append(this.#entry(act, facts), onWritten && { onWritten }))
  }

  /** The same of what leaves nothing on this machine or elsewhere that outlives its power: it may be done once it is written, and is told of once that is on the disk. */
  beginBriefly(act: AuditAct, facts: ActFacts): { readonly written: Promise<unknown>; readonly begun: Promise<Begun> } {
    let onWritten: () => void = () => undefined
    const early = new Promise<void>((resolve) => {
      onWritten = resolve
    })
    const begun = this.begin(act, facts, onWritten)
    const written = Promise.race([early, begun])
    // Whoever waits for neither is told by what they asked for.
    written.catch(() => undefined)
    return { written, begun }
  }

  /** What is over with its one record, before whoever asked is told. */
  async done(act: AuditAct, facts: ActFacts & Pick<AuditEntry, 'receipt'>): Promise<void> {
    const { receipt, ...rest } = facts
    await this.#doer.trail.append({ ...this.#entry(act, rest), outcome: { kind: 'ok' }, ...(receipt !== undefined && { receipt }) })
  }

  /** What happened, and is not waited for. */
  tell(act: AuditAct, facts: ActFacts & Pick<AuditEntry, 'receipt'>): void {
    const { receipt, ...rest } = facts
    void this.#later(this.#doer.trail.tell({ ...this.#entry(act, rest), outcome: { kind: 'ok' }, ...(receipt !== undefined && { receipt }) }))
  }

  async #through<T>(begun: Begun, effect: () => Promise<T>, ending: ((result: T) => Ending) | undefined): Promise<T> {
    let result: T
    try {
      result = await effect()
    } catch (error) {
      begun.failed(error)
      throw error
    }
    begun.ok(ending?.(result))
    return result
  }

  /** How an act ended is owed: nobody waits for the disk to hear of it. */
  #begun(appended: Appended): Begun {
    const { trail } = this.#doer
    return {
      ok: (ending = {}) => void this.#later(trail.finish(appended, { ...ending, outcome: { kind: 'ok' } }, { mayWait: true })),
      told: (ending = {}) => this.#later(trail.finish(appended, { ...ending, outcome: { kind: 'ok' } })),
      failed: (error) => void this.#later(trail.finish(appended, { outcome: outcomeOf(error) }, { mayWait: true })),
    }
  }

  /** It is rejected only when the trail is closed, with everything. */
  #later(told: Promise<unknown>): Promise<unknown> {
    return told.catch(() => undefined)
  }

  #entry(act: AuditAct, { sandbox, agent, details }: ActFacts): AuditEntry {
    const { actor, tenant, request, agentOf } = this.#doer
    const served = agent ?? (sandbox === undefined ? undefined : agentOf(sandbox))
    const whose = { act, actor: actor.key, tenant, ...(actor.tenant !== tenant && { details: { ofTenant: actor.tenant, ...details } }) }
    const what = { ...(sandbox !== undefined && { sandbox: shortened(sandbox) }), ...(served !== undefined && { agent: shortened(served) }) }
    return { ...(details && { details }), ...whose, ...what, ...(request !== undefined && { request }) }
  }
}

/** What strangers name: anything, of any length. */
function shortened(text: unknown): string {
  return String(text).slice(0, 200)
}

function outcomeOf(error: unknown): NonNullable<AuditEntry['outcome']> {
  if (error instanceof SandboxError) return { kind: 'error', code: error.code, message: error.message }
  const isAbort = error instanceof Error && error.name === 'AbortError'
  return { kind: 'error', code: isAbort ? 'aborted' : 'internal', message: isAbort ? 'it was called off' : 'a defect of ours' }
}
