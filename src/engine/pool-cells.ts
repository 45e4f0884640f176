import type { Language } from '../contract/code.js'
import type { PoolSettings } from '../contract/pools.js'
import type { PlatformBounds } from '../contract/platform-settings.js'
import type { PlannedSandbox } from '../policy/apply.js'
import type { LiveSandbox } from './live-sandbox.js'
import type { Tools } from './making.js'
import { Pool, type PoolItem } from './pool.js'
import { WarmCell } from './pool-cell.js'
import { CodeCell } from './pool-code-cell.js'
import type { Birth } from './sandbox-birth.js'

/** What pools need of the engine. */
export interface PoolGround {
  readonly tools: Tools
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

  constructor({ planned, sizes, name, onChange, language }: CellPoolOrder, ground: PoolGround) {
    this.#ground = ground
    this.#planned = planned
    const { tools, bounds } = ground
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
        return language === undefined ? WarmCell.make(order, tools, bounds.answerMs) : CodeCell.make(order, language, ground)
      },
      hasRoom: () => ground.count() < bounds.maxSandboxes,
      onChange,
    })
  }

  /** Its times and who it is for begin now. */
  async acquire(planned: PlannedSandbox, signal?: AbortSignal): Promise<LiveSandbox> {
    const { template } = this.#planned.spec
    await dropOutdated(this.pool, template, this.#ground)
    return this.pool.acquire((warm) => {
      let over = (): void => undefined
      const gone = new Promise<undefined>((resolve) => {
        over = () => resolve(undefined)
      })
      const sandbox = warm instanceof CodeCell ? warm.handOver(planned, over) : this.#bear(warm, planned, over)
      this.#ground.show(sandbox)
      return { value: sandbox, over: gone, close: () => sandbox.close() }
    }, signal)
  }

  #bear(warm: WarmCell, planned: PlannedSandbox, onGone: () => void): LiveSandbox {
    const { id, preparation } = warm
    return this.#ground.bear({ id, planned, preparation, home: warm.handOver(), pooled: true, onGone })
  }
}

export interface CellPoolOrder {
  readonly planned: PlannedSandbox
  readonly sizes: PoolSizes
  /** How it is called in messages. */
  readonly name: string
  readonly onChange: () => void
  /** Of the interpreter that waits in each; undefined: none does. */
  readonly language?: Language | undefined
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
