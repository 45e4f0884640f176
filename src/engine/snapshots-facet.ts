import { checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import type { Faults } from '../contract/faults.js'
import type { CallOptions, SandboxInfo } from '../contract/platform.js'
import type { ManifestEntry, SnapshotDraft, SnapshotStore, StoredSnapshot } from '../contract/snapshot-store.js'
import type { Change, ForkOptions, PlatformSnapshots, SinceOptions, SnapshotInfo, TakeOptions } from '../contract/snapshots.js'
import type { SpecInput } from '../contract/spec.js'
import type { PlannedSandbox } from '../policy/apply.js'
import { type Difference, diffEntries } from '../policy/diff.js'
import { parseFork, parseReference, parseSnapshotName, referenceIn, templateIdRefusal, templateRefusal, withTemplateOf } from '../policy/snapshot-options.js'
import { checkRoom, restoreSnapshot } from './restoring.js'
import type { LayeredSandbox, ReadableSandbox, Reading } from './snapshots-access.js'
import { exportChanges, type Exporting } from './snapshots-export.js'
import { type KeptLayer, keptLayers, pathInCell } from './snapshots-layers.js'
import { currentEntries, packLayers } from './snapshots-packing.js'
import { readSpooled } from './snapshots-spool.js'
import { beneathOf, viewOf } from './snapshots-view.js'

export interface SnapshotsParts {
  readonly store: SnapshotStore
  find(id: string): Promise<SnapshotSource>
  create(planned: PlannedSandbox, origin: StoredSnapshot, signal: AbortSignal): Promise<SandboxInfo>
  close(id: string): Promise<void>
  readonly faults?: Faults | undefined
}

/** What can be read has no cell to speak of before its turn has come. */
export interface SnapshotSource {
  readonly info: SandboxInfo
  readonly hold: ReadableSandbox
}

/** The files of a sandbox that has no cell. */
export interface FilesAside {
  /** Into the same sandbox's next cell. */
  restore(sandbox: LayeredSandbox, signal: AbortSignal): Promise<void>
  /** Idempotent. */
  discard(): Promise<void>
}

/** What cannot be kept is told before `settle` is called, which ends all that could write. */
export type KeepAside = (sandbox: LayeredSandbox, options: { readonly settle: () => Promise<void>; readonly signal: AbortSignal }) => Promise<FilesAside>

/** Cells that are opened at once; more would only wait for each other. */
const forksAtOnce = 4

/** What the engine does with snapshots: takes them out of sandboxes, compares, and makes new sandboxes of them. */
export class SnapshotsFacet implements PlatformSnapshots {
  readonly #parts: SnapshotsParts

  constructor(parts: SnapshotsParts) {
    this.#parts = parts
  }

  async take(id: string, options: TakeOptions = {}): Promise<SnapshotInfo> {
    const { signal, name } = checkCallOptions(options, ['signal', 'name'])
    const named = name === undefined ? undefined : parseSnapshotName(name)
    signal?.throwIfAborted()
    return this.#drafted(id, signal, (draft) => draft.keep(named))
  }

  async list(options: CallOptions = {}): Promise<readonly SnapshotInfo[]> {
    checkCallOptions(options).signal?.throwIfAborted()
    return this.#parts.store.list()
  }

  async remove(snapshot: string, options: CallOptions = {}): Promise<boolean> {
    checkCallOptions(options).signal?.throwIfAborted()
    return this.#parts.store.remove(parseReference(snapshot, 'snapshot'))
  }

  async diff(id: string, options: SinceOptions = {}): Promise<readonly Change[]> {
    return this.#comparing(id, options, async ({ source, before, signal }) => {
      const { differences, layers } = await source.hold.whileStill(signal, async (reading) => compare(reading, await before))
      return differences.map((difference) => changeOf(difference, layers))
    })
  }

  async export(id: string, options: SinceOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    return this.#comparing(id, options, async ({ source, before, signal }) => {
      const drafting = this.#draft(source)
      try {
        await source.hold.whileStill(signal, async (reading) => {
          const draft = await drafting
          for await (const piece of exportChanges(await compare(reading, await before), reading.access)) await draft.write(piece)
        })
        return await readSpooled(await drafting, signal)
      } catch (error) {
        await discard(drafting)
        throw error
      }
    })
  }

  async fork(id: string, count: number, options: ForkOptions = {}): Promise<readonly SandboxInfo[]> {
    const { signal, name, metadata } = checkCallOptions(options, ['signal', 'name', 'metadata'])
    const plan = parseFork(count, { ...(name !== undefined && { name }), ...(metadata !== undefined && { metadata }) })
    signal?.throwIfAborted()
    return this.#drafted(id, signal, async (draft, { planned }) => {
      const origin = await draft.seal()
      this.#parts.faults?.('fork/sealed')
      const spec = {
        ...planned.spec,
        from: origin.info.id,
        ...(plan.name !== undefined && { name: plan.name }),
        ...(plan.metadata && { metadata: plan.metadata }),
      }
      return this.#createAll({ ...planned, spec }, { origin, count: plan.count, signal })
    })
  }

  /** The snapshot that a spec begins with; undefined when it names none. */
  originOf(spec: unknown): Promise<StoredSnapshot> | undefined {
    const reference = referenceIn(spec)
    return reference === undefined ? undefined : this.#findWhole(reference)
  }

  /** Whatever is wrong with beginning so is told before anything is opened. */
  plan(spec: SpecInput, origin: StoredSnapshot, planWith: (spec: SpecInput) => PlannedSandbox): PlannedSandbox {
    const planned = planWith(withTemplateOf(spec, origin.info.template))
    const refusal = templateRefusal('template', planned.spec.template, origin.info)
    if (refusal) throw refusal
    checkRoom(origin, planned.spec.limits)
    // A name may move; what this one begins with does not.
    return { ...planned, spec: { ...planned.spec, from: origin.info.id } }
  }

  async restore(sandbox: LayeredSandbox, origin: StoredSnapshot, signal: AbortSignal): Promise<void> {
    await restoreSnapshot(origin, layersOf(sandbox), sandbox.access(signal))
  }

  /** What the sandbox has written, for itself alone: in nobody's list, and gone with the process that put it there. */
  async keepAside(sandbox: LayeredSandbox, { settle, signal }: Parameters<KeepAside>[1]): Promise<FilesAside> {
    const layers = layersOf(sandbox)
    const draft = await this.#parts.store.draft(sandbox.info.spec.template, sandbox.info.templateId)
    try {
      await settle()
      await packLayers(layers, sandbox.access(signal), draft)
      signal.throwIfAborted()
      const kept = await draft.seal()
      return { restore: (into, until) => this.restore(into, kept, until), discard: () => draft.discard() }
    } catch (error) {
      await draft.discard()
      throw error
    }
  }

  /** What the sandbox has written, in a draft that is gone afterwards unless it was kept. */
  async #drafted<T>(id: string, signal: AbortSignal | undefined, use: (draft: SnapshotDraft, sandbox: LayeredSandbox) => Promise<T>): Promise<T> {
    const source = await this.#parts.find(id)
    const drafting = this.#draft(source)
    try {
      const sandbox = await source.hold.whileStill(signal, async (reading) => {
        const draft = await drafting
        this.#parts.faults?.('snapshot/drafted')
        await packLayers(layersOf(reading.sandbox), reading.access, draft)
        this.#parts.faults?.('snapshot/packed')
        return reading.sandbox
      })
      this.#parts.faults?.('snapshot/still')
      signal?.throwIfAborted()
      return await use(await drafting, sandbox)
    } finally {
      await discard(drafting)
    }
  }

  /** Nobody waits for it before the stillness is asked for: a pause that is asked for next would come first. */
  #draft({ info }: SnapshotSource): Promise<SnapshotDraft> {
    return quiet(this.#parts.store.draft(info.spec.template, info.templateId))
  }

  async #comparing<T>(id: string, options: SinceOptions, act: (comparison: Comparison) => Promise<T>): Promise<T> {
    const { signal, since } = checkCallOptions(options, ['signal', 'since'])
    const reference = since === undefined ? undefined : parseReference(since, 'since')
    signal?.throwIfAborted()
    const source = await this.#parts.find(id)
    const before = quiet(reference === undefined ? Promise.resolve([]) : this.#entriesOf(reference, source.info))
    return act({ source, before, signal })
  }

  async #entriesOf(reference: string, { spec, templateId }: SandboxInfo): Promise<ManifestEntry[]> {
    const snapshot = await this.#find(reference, 'since')
    const refusal = templateRefusal('since', spec.template, snapshot.info) ?? templateIdRefusal('since', templateId, snapshot.info)
    if (refusal) throw refusal
    const entries: ManifestEntry[] = []
    for await (const entry of snapshot.entries()) entries.push(entry)
    return entries
  }

  async #findWhole(reference: string): Promise<StoredSnapshot> {
    const found = await this.#find(reference, 'from')
    await found.check()
    return found
  }

  async #find(reference: string, field: string): Promise<StoredSnapshot> {
    const found = await this.#parts.store.find(reference)
    if (found) return found
    throw new SandboxError('not-found', `${field}: there is no snapshot ${reference}`, { hint: 'glovebox snapshots list' })
  }

  async #createAll(planned: PlannedSandbox, { origin, count, signal }: Forking): Promise<readonly SandboxInfo[]> {
    const calledOff = new AbortController()
    const either = signal ? AbortSignal.any([signal, calledOff.signal]) : calledOff.signal
    const made: SandboxInfo[] = []
    let begun = 0
    const makeSome = async (): Promise<void> => {
      while (begun < count) {
        begun += 1
        either.throwIfAborted()
        made.push(await this.#parts.create(planned, origin, either))
        this.#parts.faults?.('fork/made')
      }
    }
    const makers = Array.from({ length: Math.min(count, forksAtOnce) }, () =>
      makeSome().catch((error: unknown) => {
        calledOff.abort(error)
        throw error
      }),
    )
    if ((await Promise.allSettled(makers)).every(({ status }) => status === 'fulfilled')) return made
    await Promise.all(made.map((info) => this.#parts.close(info.id)))
    // The first that failed; the others were called off with its reason.
    throw signal?.aborted ? signal.reason : calledOff.signal.reason
  }
}

/** Whoever waits for it later is told why it failed. */
function quiet<T>(pending: Promise<T>): Promise<T> {
  pending.catch(() => undefined)
  return pending
}

/** One that never came about left nothing. */
async function discard(drafting: Promise<SnapshotDraft>): Promise<void> {
  await (await drafting.catch(() => undefined))?.discard()
}

interface Comparison {
  readonly source: SnapshotSource
  /** Not waited for before the stillness is asked for either. */
  readonly before: Promise<readonly ManifestEntry[]>
  readonly signal: AbortSignal | undefined
}

interface Forking {
  readonly origin: StoredSnapshot
  readonly count: number
  readonly signal: AbortSignal | undefined
}

async function compare({ sandbox, access }: Reading, before: readonly ManifestEntry[]): Promise<Exporting> {
  const layers = layersOf(sandbox)
  const now = await currentEntries(layers, access)
  const beneath = await beneathOf(layers, [...before, ...now])
  return { differences: diffEntries(viewOf(before, beneath), viewOf(now, beneath)), now, layers }
}

function layersOf({ cell, info }: LayeredSandbox): KeptLayer[] {
  return keptLayers(cell, info.spec.mounts)
}

function changeOf({ type, entry }: Difference, layers: readonly KeptLayer[]): Change {
  const pathBytes = pathInCell(entry, layers)
  const path = new TextDecoder().decode(pathBytes)
  const isText = Buffer.from(path, 'utf8').equals(pathBytes)
  return { type, path, ...(!isText && { pathBytes }), entry: entry.type as Change['entry'], size: entry.size, mode: entry.mode }
}
