/** From a Dockerfile to steps: variables replaced, files hashed, bases found. Every step has a key that tells all that leads to it, so that what was done once is known. */
import { createHash } from 'node:crypto'
import { arch } from 'node:os'
import { posix } from 'node:path'
import type { StoredTemplate } from '../record.js'
import { type CopySource, findSources, hashSources, textSource } from './copy-sources.js'
import type { CopyInstruction, Dockerfile, Instruction, Stage } from './dockerfile.js'
import { wrong } from './dockerfile-lines.js'
import { expandText, expandVariables, jsonWords, splitWords, type WordOptions } from './dockerfile-words.js'
import type { Ignored } from './dockerignore.js'
import { emptyConfig, type ImageConfig, machineHere } from './image-config.js'

interface StepHead {
  readonly line: number
  readonly shown: string
  /** `sha256` of all that leads to it. */
  readonly key: string
}

export type Step = StepHead &
  (
    | { readonly type: 'run'; readonly argv: readonly string[]; readonly env: Readonly<Record<string, string>>; readonly cwd: string; readonly user: string }
    | { readonly type: 'copy'; readonly sources: readonly CopySource[]; readonly to: string; readonly chmod: number | undefined }
    | {
        readonly type: 'copy-from'
        readonly from: StagePlan | StoredTemplate
        readonly paths: readonly string[]
        readonly to: string
        readonly chmod: number | undefined
      }
    | { readonly type: 'folder'; readonly path: string }
  )

export interface StagePlan {
  readonly base: StoredTemplate
  readonly steps: readonly Step[]
  readonly config: ImageConfig
  readonly key: string
}

export interface PlanOptions {
  /** Files to be copied are below it. */
  readonly folder: string
  readonly isIgnored: Ignored
  readonly args: Readonly<Record<string, string>>
  /** By name or number; the last one when not given. */
  readonly target: string | undefined
  /** A template that is here, or one that is made of an image. */
  readonly findBase: (name: string, line: number) => Promise<StoredTemplate>
  readonly note: (text: string) => void
}

const hash = (...parts: readonly unknown[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('hex')

export async function planBuild(file: Dockerfile, options: PlanOptions): Promise<StagePlan> {
  const planner = new Planner(file, options)
  return planner.target()
}

class Planner {
  readonly #file: Dockerfile
  readonly #options: PlanOptions
  readonly #globals: ReadonlyMap<string, string>
  readonly #plans = new Map<Stage, Promise<StagePlan>>()

  constructor(file: Dockerfile, options: PlanOptions) {
    this.#file = file
    this.#options = options
    const globals = new Map<string, string>(Object.entries(automatic()))
    for (const { rest } of file.globals)
      declare(rest, { known: globals, given: options.args, words: { escape: file.escape, lookup: (name) => globals.get(name) } })
    this.#globals = globals
  }

  target(): Promise<StagePlan> {
    const { target } = this.#options
    const { stages } = this.#file
    const stage = target === undefined ? stages.at(-1) : this.#stageOf(target, stages.length)
    if (stage === undefined) throw wrong(1, `there is no stage '${target}'`)
    return this.#plan(stage)
  }

  /** Each stage is planned once, and only when something needs it. */
  #plan(stage: Stage): Promise<StagePlan> {
    const known = this.#plans.get(stage)
    if (known) return known
    const made = this.#makePlan(stage)
    this.#plans.set(stage, made)
    return made
  }

  async #makePlan(stage: Stage): Promise<StagePlan> {
    const base = expandText(stage.base, { escape: this.#file.escape, lookup: (name) => this.#globals.get(name) })
    if (base === '') throw wrong(stage.line, `FROM ${stage.base} names nothing`)
    const earlier = this.#stageOf(base, this.#file.stages.indexOf(stage))
    const begun = earlier ? await this.#plan(earlier) : beginning(await this.#options.findBase(base, stage.line))
    const making = new StageMaking(begun, { ...this.#options, escape: this.#file.escape, globals: this.#globals })
    for (const instruction of stage.instructions) {
      const from = 'from' in instruction && instruction.from !== undefined ? await this.#source(instruction.from, stage, instruction.line) : undefined
      making.add(instruction, from)
    }
    return making.plan()
  }

  #stageOf(name: string, before: number): Stage | undefined {
    const earlier = this.#file.stages.slice(0, before)
    return earlier.findLast((stage) => stage.name === name.toLowerCase()) ?? (/^\d+$/.test(name) ? earlier[Number(name)] : undefined)
  }

  async #source(written: string, stage: Stage, line: number): Promise<StagePlan | StoredTemplate> {
    const name = expandText(written, { escape: this.#file.escape, lookup: (each) => this.#globals.get(each) })
    const earlier = this.#stageOf(name, this.#file.stages.indexOf(stage))
    return earlier ? this.#plan(earlier) : this.#options.findBase(name, line)
  }
}

function beginning(base: StoredTemplate): StagePlan {
  const { env, image, id } = base.info
  const said = image && { user: image.user, workdir: image.workdir, entrypoint: image.entrypoint, cmd: image.cmd, labels: image.labels }
  return { base, steps: [], config: { ...emptyConfig, env, ...said }, key: hash('base', id) }
}

interface MakingOptions extends PlanOptions {
  readonly escape: string
  readonly globals: ReadonlyMap<string, string>
}

/** One stage on its way: what was said so far, and what is to be done. */
class StageMaking {
  readonly #options: MakingOptions
  readonly #base: StoredTemplate
  readonly #steps: Step[]
  readonly #args = new Map<string, string>()
  #config: ImageConfig
  #key: string

  constructor({ base, steps, config, key }: StagePlan, options: MakingOptions) {
    this.#options = options
    this.#base = base
    this.#steps = [...steps]
    this.#config = config
    this.#key = key
  }

  plan(): StagePlan {
    return { base: this.#base, steps: this.#steps, config: this.#config, key: hash(this.#key, this.#config) }
  }

  add(instruction: Instruction, from: StagePlan | StoredTemplate | undefined): void {
    switch (instruction.type) {
      case 'nothing':
        this.#options.note(`Dockerfile:${instruction.line}: ${instruction.shown} does nothing here: ${instruction.why}`)
        return
      case 'arg':
        declare(instruction.rest, { known: this.#args, given: this.#options.args, words: this.#words(), defaults: this.#options.globals })
        return
      case 'env':
        this.#set({ env: { ...this.#config.env, ...this.#pairs(instruction) } })
        return
      case 'label':
        this.#set({ labels: { ...this.#config.labels, ...this.#pairs(instruction) } })
        return
      case 'user':
        this.#set({ user: expandText(instruction.rest, this.#words()) })
        return
      case 'workdir':
        this.#workdir(instruction)
        return
      case 'shell':
        this.#set({ shell: instruction.argv })
        return
      case 'cmd':
        this.#set({ cmd: this.#argv(instruction.command) })
        return
      case 'entrypoint':
        // As everywhere: what is started by an image's own program is forgotten with it.
        this.#set({ entrypoint: this.#argv(instruction.command), cmd: [] })
        return
      case 'run':
        this.#run(instruction)
        return
      case 'copy':
      case 'add':
        if (from === undefined) this.#copy(instruction)
        else this.#copyFrom(instruction, from)
    }
  }

  #set(change: Partial<ImageConfig>): void {
    this.#config = { ...this.#config, ...change }
  }

  #words(): WordOptions {
    return { escape: this.#options.escape, lookup: (name) => this.#config.env[name] ?? this.#args.get(name) }
  }

  #argv(command: Extract<Instruction, { type: 'run' }>['command']): readonly string[] {
    return command.kind === 'argv' ? command.argv : [...this.#config.shell, command.text]
  }

  /** `NAME=value NAME="value"`, or the old form `NAME value`. */
  #pairs({ rest, line }: { readonly rest: string; readonly line: number }): Record<string, string> {
    const [first = ''] = splitWords(rest, { escape: this.#options.escape })
    if (!first.includes('=')) return { [first]: expandText(rest.slice(rest.search(/\s|$/)).trim(), this.#words()) }
    return Object.fromEntries(
      splitWords(rest, this.#words()).map((word): [string, string] => {
        const equals = word.indexOf('=')
        if (equals < 1) throw wrong(line, `'${word}' is no NAME=value`)
        return [word.slice(0, equals), word.slice(equals + 1)]
      }),
    )
  }

  #absolute(path: string): string {
    return posix.resolve(this.#config.workdir === '' ? '/' : this.#config.workdir, path)
  }

  #workdir({ rest, line, shown }: { readonly rest: string; readonly line: number; readonly shown: string }): void {
    const path = this.#absolute(expandText(rest, this.#words()))
    this.#set({ workdir: path })
    this.#push({ type: 'folder', path, line, shown }, [path])
  }

  #run({ command, line, shown }: Extract<Instruction, { type: 'run' }>): void {
    const { env, user, workdir } = this.#config
    const run = { argv: this.#argv(command), env: { ...Object.fromEntries(this.#args), ...env }, cwd: workdir === '' ? '/' : workdir, user }
    this.#push({ type: 'run', ...run, line, shown }, run)
  }

  #targets({ rest, line }: CopyInstruction): { readonly paths: string[]; readonly to: string } {
    const words = jsonWords(rest)?.map((word) => expandText(word, this.#words())) ?? splitWords(rest, this.#words())
    const last = words.at(-1)
    if (last === undefined || words.length < 2) throw wrong(line, 'what is to be copied is followed by where it goes')
    const to = this.#absolute(last)
    return { paths: words.slice(0, -1), to: /(?:\/|^\.|\/\.)$/.test(last) && to !== '/' ? `${to}/` : to }
  }

  #copy(instruction: CopyInstruction): void {
    const { type, line, shown, chmod, heredocs } = instruction
    const { paths, to } = this.#targets(instruction)
    const { folder, isIgnored } = this.#options
    const documents = [...heredocs]
    const sources = paths.flatMap((path): CopySource[] => {
      if (/^<<-?/.test(path)) {
        const document = documents.shift()
        return document ? [textSource(document.name, document.isExpanded ? expandVariables(document.text, this.#words()) : document.text)] : []
      }
      if (/^(?:https?|git|ssh):|^git@/.test(path)) throw wrong(line, `${path} is elsewhere: fetch it in a RUN, or before the build`)
      try {
        return findSources(path, { folder, isIgnored, unpacks: type === 'add' })
      } catch (error) {
        throw wrong(line, (error as Error).message)
      }
    })
    const step = { sources, to, chmod: modeOf(chmod), line, shown }
    this.#push({ type: 'copy', ...step }, [hashSources(sources), to, chmod])
  }

  #copyFrom(instruction: CopyInstruction, from: StagePlan | StoredTemplate): void {
    const { line, shown, chmod } = instruction
    const { paths, to } = this.#targets(instruction)
    const globbed = paths.find((path) => /[*?[]/.test(path))
    if (globbed !== undefined) throw wrong(line, `'${globbed}' cannot be looked for in another stage: name the folder`)
    const step = { from, paths: paths.map((path) => posix.resolve('/', path)), to, chmod: modeOf(chmod), line, shown }
    this.#push({ type: 'copy-from', ...step }, ['key' in from ? from.key : from.info.id, step.paths, to, chmod])
  }

  #push(step: Step extends infer Each ? (Each extends Step ? Omit<Each, 'key'> : never) : never, inputs: unknown): void {
    this.#key = hash(this.#key, step.type, inputs)
    this.#steps.push({ ...step, key: this.#key })
  }
}

interface Declaring {
  readonly known: Map<string, string>
  /** By whoever builds. */
  readonly given: Readonly<Record<string, string>>
  readonly words: WordOptions
  readonly defaults?: ReadonlyMap<string, string>
}

function declare(rest: string, { known, given, words, defaults }: Declaring): void {
  for (const word of splitWords(rest, words)) {
    const equals = word.indexOf('=')
    const name = equals === -1 ? word : word.slice(0, equals)
    const value = (Object.hasOwn(given, name) ? given[name] : undefined) ?? (equals === -1 ? defaults?.get(name) : word.slice(equals + 1))
    if (value !== undefined) known.set(name, value)
  }
}

function modeOf(chmod: string | undefined): number | undefined {
  return chmod === undefined ? undefined : Number.parseInt(chmod, 8) & 0o777
}

/** What every Dockerfile may ask for. */
function automatic(): Record<string, string> {
  const machine = machineHere()
  const platform = `linux/${machine}`
  return { TARGETPLATFORM: platform, TARGETOS: 'linux', TARGETARCH: machine, BUILDPLATFORM: platform, BUILDOS: 'linux', BUILDARCH: machine || arch() }
}
