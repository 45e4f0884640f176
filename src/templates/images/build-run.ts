/**
 * Does the steps of a stage in a sandbox: in-cell root over the base, which stays as it is. What a RUN left is kept as a snapshot under the key of that step, so that the
 * next build begins behind the last one that is known.
 */
import { createReadStream } from 'node:fs'
import { availableParallelism } from 'node:os'
import { basename, join, posix } from 'node:path'
import type { TemplateRoot } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import type { FileCalls } from '../../contract/files.js'
import type { LimitsInput } from '../../contract/limits.js'
import type { NetworkInput } from '../../contract/network.js'
import type { Platform } from '../../contract/platform.js'
import type { Outcome } from '../../contract/run.js'
import type { BuildEvent } from '../../contract/templates.js'
import { decompress } from '../../sys/decompress.js'
import { storedRoot } from '../built-root.js'
import type { StoredTemplate } from '../record.js'
import type { TemplateStore } from '../store.js'
import { TemplateView } from '../template-view.js'
import type { Workshop } from '../workshop.js'
import type { StagePlan, Step } from './build-plan.js'
import { archiveOf, type CopiedEntry, type CopySource, findSources } from './copy-sources.js'
import { wrong } from './dockerfile-lines.js'
import { readOrdinary } from './ordinary-file.js'

export interface StageOptions {
  readonly store: TemplateStore
  readonly workshop: Workshop
  readonly network: NetworkInput
  readonly limits: LimitsInput
  /** Whether what was done before is done again. */
  readonly isFresh: boolean
  readonly signal: AbortSignal | undefined
  readonly tell: (event: BuildEvent) => void
}

type Run = Extract<Step, { type: 'run' }>
type Copy = Extract<Step, { type: 'copy' }>
type CopyFrom = Extract<Step, { type: 'copy-from' }>

const mostWords = 4000
const asRoot = { user: 'root' } as const

/** The stages of one build, each in a sandbox that stays open until the build is over. */
export class StageRunner implements AsyncDisposable {
  readonly #options: StageOptions
  readonly #open = new Map<StagePlan, Promise<OpenStage>>()
  readonly #platforms: Platform[] = []

  constructor(options: StageOptions) {
    this.#options = options
  }

  /** What a stage left over its base, as a layer. */
  async *layerOf(plan: StagePlan): AsyncGenerator<Uint8Array, void, undefined> {
    const { platform, id } = await this.#stage(plan)
    const { signal } = this.#options
    yield* await platform.snapshots.export(id, signal ? { signal } : {})
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const platform of this.#platforms) await platform[Symbol.asyncDispose]()
  }

  #stage(plan: StagePlan): Promise<OpenStage> {
    const known = this.#open.get(plan)
    if (known) return known
    const made = this.#make(plan)
    this.#open.set(plan, made)
    return made
  }

  async #make(plan: StagePlan): Promise<OpenStage> {
    const { workshop, store, network, signal, isFresh } = this.#options
    const platform = workshop({ ...storedRoot(plan.base), hold: (cellId) => store.hold(plan.base, cellId) }, { isHeld: true })
    this.#platforms.push(platform)
    const done = isFresh ? 0 : await doneBefore(plan, platform)
    const from = done === 0 ? {} : { from: nameOf(plan.steps[done - 1] as Step) }
    const limits = await limitsHere(platform, this.#options.limits)
    const spec = { template: 'base', name: 'template build', root: 'overlay', ...asRoot, network, limits, lifetime: '24h', ...from } as const
    const { id } = await platform.create(spec, signal ? { signal } : {}).catch((error: unknown) => {
      throw asBuild(error)
    })
    const stage = { platform, id, files: platform.files.of(id) }
    for (const [index, step] of plan.steps.entries()) {
      const detail = `[${index + 1}/${plan.steps.length}] ${step.shown}`
      const phase = step.type === 'run' ? 'running' : 'copying'
      this.#options.tell({ type: 'phase', phase, detail: index < done ? `${detail} (known)` : detail })
      if (index >= done) await this.#do(step, stage)
    }
    return stage
  }

  async #do(step: Step, stage: OpenStage): Promise<void> {
    this.#options.signal?.throwIfAborted()
    try {
      if (step.type === 'run') await this.#run(step, stage)
      else if (step.type === 'folder') await stage.files.mkdir(step.path, { ...asRoot, mode: 0o755 })
      else if (step.type === 'copy') await copy(step, stage)
      else await this.#copyFrom(step, stage)
    } catch (error) {
      if (!(error instanceof SandboxError) || error.message.startsWith('Dockerfile:')) throw error
      throw wrong(step.line, `${step.shown}: ${error.message}`)
    }
  }

  async #run(step: Run, { platform, id }: OpenStage): Promise<void> {
    const { signal, tell } = this.#options
    const calls = signal ? { signal } : {}
    const home = homeOf(step.user)
    const program = await platform.start(id, { command: [...step.argv], cwd: step.cwd, env: { HOME: home, ...step.env }, ...asRoot }, calls)
    let words = ''
    try {
      for await (const { bytes } of program.output) {
        signal?.throwIfAborted()
        const text = Buffer.from(bytes).toString('utf8')
        words = `${words}${text}`.slice(-mostWords)
        tell({ type: 'output', text })
      }
    } catch (error) {
      await program.kill('the build was given up').catch(() => undefined)
      throw error
    }
    const { outcome } = await program.ended
    if (outcome.kind !== 'exited' || outcome.code !== 0) throw wrong(step.line, `${step.shown}: ${failureIn(outcome)}${lastLine(words)}`)
    await platform.snapshots.take(id, { ...calls, name: nameOf(step) })
  }

  async #copyFrom(step: CopyFrom, stage: OpenStage): Promise<void> {
    const { from } = step
    if (!('key' in from)) return copy({ to: step.to, chmod: step.chmod, sources: step.paths.flatMap((path) => sourcesIn(from, path)) }, stage)
    const other = await this.#stage(from)
    for (const path of step.paths) await copyBetween({ path, to: step.to, chmod: step.chmod, isOnly: step.paths.length === 1 }, other, stage)
  }
}

interface OpenStage {
  readonly platform: Platform
  readonly id: string
  readonly files: FileCalls
}

function nameOf({ key }: Step): string {
  return `step ${key}`
}

/** How many steps need not be done: all up to the last RUN whose end is kept. */
async function doneBefore({ steps }: StagePlan, platform: Platform): Promise<number> {
  const names = new Set((await platform.snapshots.list()).map(({ name }) => name))
  return steps.findLastIndex((step) => step.type === 'run' && names.has(nameOf(step))) + 1
}

/** What is written in a build lies in memory until it is over. Where a limit cannot be enforced there is none to state. */
async function limitsHere(platform: Platform, wished: LimitsInput): Promise<LimitsInput> {
  const probe = (await platform.probe()).find(({ available, isolates }) => available && isolates)
  const usual: LimitsInput = { memory: '4g', disk: '4g', fileSize: '4g', inodes: 500_000, processes: 1024, time: '1h', cpus: availableParallelism() }
  const can = (name: string): boolean => !probe || !Object.hasOwn(probe.limits, name) || probe.limits[name as 'memory'].enforced
  return { ...Object.fromEntries(Object.entries(usual).filter(([name]) => can(name))), ...wished }
}

function asBuild(error: unknown): unknown {
  if (!(error instanceof SandboxError) || error.code !== 'unsupported') return error
  return new SandboxError('unsupported', `a Dockerfile cannot be built here: ${error.message}`, { hint: error.hint ?? 'glovebox doctor', cause: error })
}

function homeOf(user: string): string {
  const [name = ''] = user.split(':')
  return name === '' || name === 'root' || /^\d+$/.test(name) ? '/root' : `/home/${name}`
}

async function copy({ sources, to, chmod }: Pick<Copy, 'sources' | 'to' | 'chmod'>, { files }: Pick<OpenStage, 'files'>): Promise<void> {
  const archives = sources.filter(({ kind }) => kind === 'archive')
  for (const { entries } of archives) {
    const content = entries[0]?.content
    if (content && 'file' in content) await files.unpack(to, decompress(createReadStream(content.file)), asRoot)
  }
  const plain = sources.filter(({ kind }) => kind !== 'archive')
  if (plain.length === 0) return
  const entries = plain.flatMap(({ entries: each }) => each).map((entry) => withMode(entry, chmod))
  if (await isInto(to, plain, files)) {
    await files.unpack(to, archiveOf(entries), asRoot)
    return
  }
  const [entry] = entries
  if (entry) await files.unpack(posix.dirname(to), archiveOf([{ ...entry, path: basename(to) }]), asRoot)
}

/** Whether a place is a folder that takes what comes, rather than the name that it gets. */
async function isInto(to: string, sources: readonly CopySource[], files: FileCalls): Promise<boolean> {
  if (to.endsWith('/') || to === '/' || sources.length > 1 || sources.some(({ kind }) => kind === 'folder')) return true
  return (await files.stat(to, asRoot))?.type === 'folder'
}

function withMode(entry: CopiedEntry, chmod: number | undefined): CopiedEntry {
  return chmod === undefined || entry.type === 'link' ? entry : { ...entry, mode: chmod }
}

interface Crossing {
  readonly path: string
  readonly to: string
  readonly chmod: number | undefined
  readonly isOnly: boolean
}

/** From one sandbox to another: neither is on the machine's disk. */
async function copyBetween({ path, to, chmod, isOnly }: Crossing, from: OpenStage, into: OpenStage): Promise<void> {
  const entry = await from.files.stat(path, asRoot)
  if (entry === null) throw new SandboxError('invalid', `there is no ${path} in that stage`)
  if (entry.type === 'folder') {
    await into.files.unpack(to, await from.files.pack(path, asRoot), asRoot)
    return
  }
  const opened = await from.files.read(path, asRoot)
  const isFolder = to.endsWith('/') || !isOnly || (await into.files.stat(to, asRoot))?.type === 'folder'
  await into.files.write(isFolder ? posix.join(to, basename(path)) : to, opened.bytes, { ...asRoot, mode: chmod ?? opened.entry.mode & 0o777 })
}

/** Of a template that is here: by no link that leads out of it. */
function sourcesIn(template: StoredTemplate, path: string): CopySource[] {
  const root: TemplateRoot = storedRoot(template)
  const found = new TemplateView(root).find(path)
  if (found === undefined) throw new SandboxError('invalid', `there is no ${path} in ${template.info.name}`)
  const top = join(template.object, 'root')
  return findSources(found.source.slice(top.length + 1), { folder: top, isIgnored: () => false, unpacks: false })
}

function failureIn(outcome: Outcome): string {
  if (outcome.kind === 'exited') return `exit code ${outcome.code}`
  if (outcome.kind === 'not-started' || outcome.kind === 'killed') return outcome.reason
  return outcome.kind === 'signaled' ? outcome.signal : outcome.kind
}

/** What it said last, for whoever did not watch. */
function lastLine(words: string): string {
  const line = words.trimEnd().split('\n').at(-1)?.trim() ?? ''
  return line === '' ? '' : `: ${line.slice(0, 300)}`
}

/** A Dockerfile's own text. */
export function readDockerfile(path: string): string {
  const text = readOrdinary(path)
  if (text === undefined) throw new SandboxError('not-found', `there is no ${path}`, { hint: 'glovebox template build --file NAME FOLDER' })
  return text
}
