import type { Language } from '../contract/code.js'
import type { PoolSettings } from '../contract/pools.js'
import type { RunRequest } from '../contract/run.js'
import type { PlatformBounds } from '../contract/platform-settings.js'
import type { PlannedSandbox } from '../policy/apply.js'
import type { BegunSource } from './begun-python.js'
import type { LiveSandbox } from './live-sandbox.js'
import type { Tools } from './making.js'
import { Pool, type PoolItem } from './pool.js'
import { WarmCell } from './pool-cell.js'
import { CodeCell } from './pool-code-cell.js'
import { pythonToBegin } from './python-command.js'
import type { Birth } from './sandbox-birth.js'
import type { Telling } from './telling.js'

/** What pools need of the engine. */
export interface PoolGround {
  readonly tools: Tools
  /** Whose all that waits is; empty where nobody says. */
  readonly tenant: string
  readonly bounds: Pick<PlatformBounds, 'maxSandboxes' | 'answerMs'>
  readonly machine: { readonly processors: number; readonly freeBytes?: () => number }
  newId(): string
  /** Sandboxes at once, everything counted: those that wait too. */
  count(): number
  /** Throws SandboxError('busy') when there is no room for one more that is somebody's. */
  checkRoom(): void
  /** Of those that wait as many go as there are too many. */
  makeRoom(): Promise<void>
  /** In no list before it is shown. */
  bear(birth: Birth): LiveSandbox
  show(sandbox: LiveSandbox): void
  readonly telling: Telling
  /** Of interpreters that are begun ahead. */
  readonly begun: BegunSource
  /** Resolves when the interpreter of a language is there; to that one's end. */
  beginCode(sandbox: LiveSandbox, language: Language): Promise<{ readonly ended: Promise<unknown> }>
}

export interface PoolSizes extends Pick<PoolSettings, 'queue'> {
  readonly size: number
  readonly max: number
  readonly recycleAfterMs: number
  readonly idleAfterMs: number | undefined
}

/** What one that waits takes of the machine's memory, told generously. */
const waitingBytes = 8 * 2 ** 20
/** What the interpreter in it takes besides. */
const interpreterBytes: Readonly<Record<Language, number>> = {
  python: 24 * 2 ** 20,
  javascript: 64 * 2 ** 20,
  typescript: 64 * 2 ** 20,
  bash: 8 * 2 ** 20,
}
/** What waits may take so much of what is free. */
const share = 1 / 4

/** What suits this machine: as many ready as it can run at once and one more, within what is free. */
export function sizesFor(settings: PoolSettings, { machine, bounds }: Pick<PoolGround, 'machine' | 'bounds'>): PoolSizes {
  const { size, max, queue, recycleAfter, idleAfter, language } = settings
  const eachBytes = waitingBytes + (language === undefined ? 0 : interpreterBytes[language])
  const fitting = Math.floor(((machine.freeBytes?.() ?? Infinity) * share) / eachBytes)
  const suitable = Math.max(1, Math.min(machine.processors * 2, fitting, bounds.maxSandboxes))
  const most = max ?? Math.max(size ?? 1, Math.min(bounds.maxSandboxes, machine.processors * 16))
  return {
    size: Math.min(size ?? suitable, most),
    max: most,
    queue,
    recycleAfterMs: recycleAfter,
    idleAfterMs: idleAfter ?? (size === undefined ? 60_000 : undefined),
  }
}

/** Cells of one class that wait to become sandboxes. */
export class CellPool {
  readonly #ground: PoolGround
  readonly #planned: PlannedSandbox
  readonly pool: Pool<WarmCell | CodeCell>
  /** Sandboxes in use are listed where all are. */
  readonly hidden = 0
  /** What its latest run was started with, where the next of that kind can be begun ahead. */
  #python: string | undefined
  /** Those that did not become ready. */
  readonly #unfit = new Set<string>()

  constructor({ planned, sizes, name, onChange, language, imports }: CellPoolOrder, ground: PoolGround) {
    this.#ground = ground
    this.#planned = planned
    const { tools, bounds } = ground
    const wish = {
      source: ground.begun,
      answerMs: bounds.answerMs,
      imports,
      begins: () => (this.#python === undefined || this.#unfit.has(this.#python) ? undefined : { program: this.#python }),
      onUnbegun: (program: string) => void this.#unfit.add(program),
    }
    this.pool = new Pool({
      name,
      ...sizes,
      atOnce: Math.max(1, Math.floor(ground.machine.processors / 2)),
      make: async (signal) => {
        ground.checkRoom()
        // By then it is counted itself.
        await Promise.resolve()
        await ground.makeRoom()
        const order = { id: ground.newId(), planned, signal }
        return language === undefined ? WarmCell.make(order, tools, wish) : CodeCell.make(order, language, ground)
      },
      hasRoom: () => ground.count() < bounds.maxSandboxes,
      onChange,
    })
  }

  /** Its times and who it is for begin now. `only`: what is run in it before anything else, where that is known. */
  async acquire(planned: PlannedSandbox, { signal, only }: Acquisition = {}): Promise<LiveSandbox> {
    const { template } = this.#planned.spec
    if (only) this.#python = pythonToBegin(only, planned.spec)
    await dropOutdated(this.pool, template, this.#ground)
    const { sandbox, alone } = await this.pool.acquire((warm) => {
      let over = (): void => undefined
      const gone = new Promise<undefined>((resolve) => {
        over = () => resolve(undefined)
      })
      const handed = warm instanceof CodeCell ? { sandbox: warm.handOver(planned, over) } : this.#bear(warm, { planned, only, onGone: over })
      this.#ground.show(handed.sandbox)
      return { value: handed, over: gone, close: () => handed.sandbox.close() }
    }, signal)
    await alone
    return sandbox
  }

  #bear(warm: WarmCell, { planned, only, onGone }: Bearing): Borne {
    const { id, preparation } = warm
    const { home, alone } = warm.handOver({ isForOneRun: only !== undefined })
    return { sandbox: this.#ground.bear({ id, planned, preparation, home, pooled: true, pool: warm.hasWaited ? 'hit' : 'miss', onGone }), alone }
  }
}

interface Bearing extends Pick<Birth, 'planned'> {
  readonly only: RunRequest | undefined
  readonly onGone: () => void
}

interface Borne {
  readonly sandbox: LiveSandbox
  /** Resolves when nothing is in it that was to become something else. */
  readonly alone?: Promise<void>
}

export interface Acquisition {
  readonly signal?: AbortSignal | undefined
  readonly only?: RunRequest | undefined
}

export interface CellPoolOrder {
  readonly planned: PlannedSandbox
  readonly sizes: PoolSizes
  /** How it is called in messages. */
  readonly name: string
  readonly onChange: () => void
  /** Of the interpreter that waits in each; undefined: none does. */
  readonly language?: Language | undefined
  /** Modules that an interpreter of Python in each has imported, or there is no cell; undefined: one is begun only once Python was run, and has none. */
  readonly imports?: readonly string[] | undefined
}

/** A template may have been built, or built again, since. */
export async function dropOutdated<Item extends PoolItem & { readonly templateId: string | undefined }>(
  pool: Pool<Item>,
  template: string,
  { tools: { makers } }: PoolGround,
): Promise<void> {
  const { templates } = makers
  const id = templates.idOf ? templates.idOf(template) : (await templates.resolve(template)).id
  void pool.drop((item) => item.templateId !== id)
}
