/** `template build DIR`: what a Dockerfile says is done in sandboxes, and what is left is a template. */
import { createHash } from 'node:crypto'
import { basename, isAbsolute, join, resolve } from 'node:path'
import { reworded, SandboxError } from '../../contract/errors.js'
import type { LimitsInput } from '../../contract/limits.js'
import type { NetworkInput } from '../../contract/network.js'
import type { BuildEvent, BuildOptions, BuildResult } from '../../contract/templates.js'
import { registryLogin } from '../../sys/registry-login.js'
import { type BuildTools, machineError, takeTurn } from '../build.js'
import type { StoredTemplate } from '../record.js'
import { planBuild, type StagePlan } from './build-plan.js'
import { readDockerfile, StageRunner } from './build-run.js'
import { parseDockerfile } from './dockerfile.js'
import { wrong } from './dockerfile-lines.js'
import { readIgnore } from './dockerignore.js'
import { emptyConfig } from './image-config.js'
import { digestOf } from './image-manifest.js'
import { keepImage } from './image-template.js'
import type { ImageLimits } from './layers.js'
import { nameFor } from './making.js'
import { type ImageReference, parseReference, pinned } from './reference.js'
import { openRemote } from './registry.js'

export interface FolderOptions extends BuildOptions {
  /** What the template is called; the folder's own name when not given. */
  readonly name?: string
  /** The Dockerfile, below the folder unless it is absolute. */
  readonly file?: string
  readonly args?: Readonly<Record<string, string>>
  /** The stage that is wanted; the last when not given. */
  readonly target?: string
  /** What a RUN may reach; nothing when not given. */
  readonly network?: NetworkInput
  /** Of the sandboxes in which it is built. */
  readonly limits?: LimitsInput
  /** Do again what was done before. */
  readonly isFresh?: boolean
  /** Ask registries again for bases that are here. */
  readonly isPulled?: boolean
  readonly imageLimits?: ImageLimits
}

interface Building extends BuildTools {
  readonly options: FolderOptions
  readonly signal: AbortSignal | undefined
  readonly tell: (event: BuildEvent) => void
}

const scratch = 'scratch'
const usualFile = 'Dockerfile'

/** Throws SandboxError('invalid') that names the line of the Dockerfile that is wrong or fails. */
export async function buildFolder(folder: string, tools: BuildTools, options: FolderOptions = {}): Promise<BuildResult> {
  const own = basename(options.file ?? usualFile)
  const named = (text: string): string => (text.startsWith(`${usualFile}:`) ? text.replace(usualFile, () => own) : text)
  const { onEvent } = options
  const tell = onEvent && ((event: BuildEvent): void => onEvent(event.type === 'note' ? { ...event, text: named(event.text) } : event))
  try {
    return await buildBy(folder, tools, tell ? { ...options, onEvent: tell } : options)
  } catch (error) {
    throw error instanceof SandboxError && named(error.message) !== error.message ? reworded(error, named(error.message)) : error
  }
}

async function buildBy(folder: string, tools: BuildTools, options: FolderOptions): Promise<BuildResult> {
  const began = Date.now()
  const { signal, onEvent: tell = () => undefined, file = usualFile, args = {}, target } = options
  const own = basename(resolve(folder))
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
  const name = nameFor(options.name ?? own)
  const parsed = parseDockerfile(readDockerfile(isAbsolute(file) ? file : join(folder, file)))
  const building: Building = { ...tools, options, signal, tell }
  using _lock = await takeTurn({ store: tools.store, signal, tell })
  await tools.store.sweep()
  const note = (text: string): void => tell({ type: 'note', text })
  const findBase = (base: string, line: number): Promise<StoredTemplate> => baseOf(base, line, building)
  const plan = await planBuild(parsed, { folder, isIgnored: readIgnore(folder, file), args, target, findBase, note })
  const kept = await keepPlan(plan, name, building)
  return { ...kept, tookMs: Date.now() - began }
}

async function keepPlan(plan: StagePlan, name: string, { store, workshop, options, signal, tell }: Building): Promise<BuildResult> {
  const { network = false, limits = {}, isFresh = false } = options
  await using runner = new StageRunner({ store, workshop, network, limits, isFresh, signal, tell })
  const image = {
    kind: 'Dockerfile' as const,
    source: basename(resolve(name)),
    summary: `built by a Dockerfile from ${plan.base.info.image?.source ?? plan.base.info.name}`,
    digest: `sha256:${plan.key}`,
    config: plan.config,
    base: join(plan.base.object, 'root'),
    layers: plan.steps.length === 0 ? [] : [{ diffId: undefined, bytes: () => runner.layerOf(plan) }],
  }
  try {
    return await keepImage(image, { name, store, workshop, limits: options.imageLimits, again: options.again === true || isFresh, signal, tell })
  } catch (error) {
    throw error instanceof SandboxError || signal?.aborted === true || (error as NodeJS.ErrnoException).code === undefined
      ? error
      : machineError(store.part('drafts'), error)
  }
}

/** A template of this name, or an image, which becomes one. */
async function baseOf(base: string, line: number, building: Building): Promise<StoredTemplate> {
  const { store, options } = building
  if (base === scratch) return keptAs(scratch, building, { kind: 'import', source: scratch, summary: 'nothing', digest: digestOf(new Uint8Array(0)) })
  const here = /^[a-z0-9._-]+$/.test(base) ? store.find(base) : undefined
  if (here) return here
  try {
    const reference = parseReference(base)
    const name = nameOfBase(reference)
    const known = options.isPulled === true ? undefined : store.find(name)
    if (known?.info.image?.source.startsWith(pinned(reference, '')) && (!reference.isDigest || known.info.image.source.endsWith(reference.version)))
      return known
    const { signal, tell } = building
    const login = registryLogin(reference.registry)
    const image = await openRemote(reference, { blobs: store.part('blobs'), login, limits: options.imageLimits, signal, tell })
    return await keptAs(name, building, image)
  } catch (error) {
    throw error instanceof SandboxError ? wrong(line, `FROM ${base}: ${error.message}`) : error
  }
}

/** Nobody asked for a template of that name: it must take the place of none, and no Dockerfile may choose what another means by it. */
function nameOfBase(reference: ImageReference): string {
  const hash = createHash('sha256').update(pinned(reference, reference.version)).digest('hex').slice(0, 16)
  return nameFor(`base-${hash}`)
}

type Kept = Parameters<typeof keepImage>[0]

async function keptAs(
  name: string,
  { store, workshop, signal, tell }: Building,
  image: Omit<Kept, 'config' | 'layers'> & Partial<Kept>,
): Promise<StoredTemplate> {
  await keepImage({ config: emptyConfig, layers: [], ...image }, { name, store, workshop, signal, tell })
  const stored = store.find(name)
  if (stored === undefined) throw new SandboxError('internal', `template ${name} was made and is not there`)
  return stored
}
