import { randomInt } from 'node:crypto'
import { codeRequestSchema, type ContextInfo, contextIdSchema, contextRequestSchema, type Language, type PlatformExecution } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import { Context, type Runtime, speaks, type Timers } from '../interpreter/index.js'
import { parseObject, parseWith } from '../policy/refusal.js'
import { Workspace } from './code-artifacts.js'
import { Interpreters, type LanguageAnswer } from './code-interpreters.js'
import type { Runtimes } from './code-runtimes.js'
import { Deadline } from './deadline.js'
import type { LiveSandbox } from './live-sandbox.js'

const mostContexts = 32
const idAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'
const idLength = 20

interface Wanted {
  readonly runtime: Runtime
  readonly cwd: string | undefined
  readonly env: Readonly<Record<string, string>>
  readonly name: string | undefined
  readonly isDefault: boolean
}

/** The contexts of one sandbox. An interpreter that ends leaves its context, which starts another when it is next used; so they outlive a pause without memory. */
export class SandboxCode {
  readonly #sandbox: LiveSandbox
  readonly #runtimes: Runtimes
  readonly #interpreters: Interpreters
  readonly #workspace: Workspace
  readonly #contexts = new Map<string, Context>()
  /** By the name of the kernel; there once it has begun. */
  readonly #defaults = new Map<string, Promise<Context>>()

  constructor(sandbox: LiveSandbox, runtimes: Runtimes) {
    this.#sandbox = sandbox
    this.#runtimes = runtimes
    this.#interpreters = new Interpreters(sandbox)
    this.#workspace = new Workspace({ host: () => sandbox.files, folder: () => sandbox.hold.layered.cell.workdir })
  }

  async languages(): Promise<Readonly<Record<Language, LanguageAnswer>>> {
    const answers = await Promise.all(
      this.#runtimes.all.map(async (runtime) => {
        const answer = await this.#interpreters.answer(runtime)
        return runtime.languages.map(({ language }) => [language, answer] as const)
      }),
    )
    return Object.fromEntries(answers.flat()) as Record<Language, LanguageAnswer>
  }

  /** The default context of a language, before anyone asks for it. Resolves when its interpreter is there; to that one's end. */
  async begin(language: Language): Promise<{ readonly ended: Promise<unknown> }> {
    return (await this.#default(this.#runtimes.of(language))).open()
  }

  async execute(asked: unknown, signal: AbortSignal | undefined): Promise<PlatformExecution> {
    const request = parseObject(codeRequestSchema, asked, { what: 'code', objects: ['env'] })
    const { timeMs, env } = this.#planned(request)
    await this.#sandbox.files.checkOpen()
    const { context, language } = await this.#contextFor(request)
    signal?.throwIfAborted()
    const execution = context.execute({
      source: request.code,
      language,
      env,
      timeoutMs: timeMs,
      takesInput: request.input,
      watch: request.artifacts ? this.#workspace : undefined,
    })
    const interrupt = (): void => void execution.interrupt()
    signal?.addEventListener('abort', interrupt, { once: true })
    const forget = (): void => signal?.removeEventListener('abort', interrupt)
    execution.ended.then(forget, forget)
    return execution
  }

  async create(asked: unknown, signal: AbortSignal | undefined): Promise<ContextInfo> {
    const { language, cwd, env, name } = parseObject(contextRequestSchema, asked, { what: 'context', objects: ['env'] })
    this.#sandbox.plan({ command: ['code'], env, ...(cwd !== undefined && { cwd }) })
    await this.#sandbox.files.checkOpen()
    return (await this.#open({ runtime: this.#runtimes.of(language), cwd, env, name, isDefault: false }, signal)).info
  }

  list(): readonly ContextInfo[] {
    return [...this.#contexts.values()].map(({ info }) => info)
  }

  async restart(id: unknown): Promise<ContextInfo> {
    const context = this.#find(id)
    await this.#sandbox.files.checkOpen()
    await context.restart()
    return context.info
  }

  async remove(id: unknown): Promise<boolean> {
    const known = parseWith(contextIdSchema, id, 'context')
    const context = this.#contexts.get(known)
    if (!context) return false
    await this.#sandbox.files.checkOpen()
    this.#forget(known)
    await context.remove()
    return true
  }

  #planned({ env, timeout }: { readonly env: Record<string, string>; readonly timeout?: number | undefined }): { timeMs: number; env: Record<string, string> } {
    const plan = this.#sandbox.plan({ command: ['code'], env, ...(timeout !== undefined && { timeout }) })
    return { timeMs: plan.timeMs ?? this.#sandbox.info.spec.limits.timeMs, env }
  }

  async #contextFor({ context: id, language }: CodeTarget): Promise<{ readonly context: Context; readonly language: Language }> {
    if (id === undefined) {
      const wanted = language ?? 'python'
      return { context: await this.#default(this.#runtimes.of(wanted)), language: wanted }
    }
    const context = this.#find(id)
    const spoken = language ?? context.info.language
    if (speaks(context.runtime, spoken)) return { context, language: spoken }
    const known = context.runtime.languages.map((each) => each.language).join(' and ')
    throw new SandboxError('invalid', `language: context ${id} speaks ${known}, not ${spoken}`)
  }

  /** Whoever asks while it begins waits for the same one; called off by nobody, for others may wait. */
  #default(runtime: Runtime): Promise<Context> {
    const known = this.#defaults.get(runtime.name)
    if (known) return known
    const opening = this.#open({ runtime, cwd: undefined, env: {}, name: undefined, isDefault: true }, undefined)
    this.#defaults.set(runtime.name, opening)
    opening.catch(() => this.#defaults.delete(runtime.name))
    return opening
  }

  /** One that does not begin is none. */
  async #open({ runtime, cwd, env, name, isDefault }: Wanted, signal: AbortSignal | undefined): Promise<Context> {
    if (this.#contexts.size >= mostContexts) {
      throw new SandboxError('busy', `sandbox ${this.#sandbox.info.id} has ${mostContexts} contexts; no more are allowed at once`, {
        hint: 'await sandbox.contexts.remove(id)',
      })
    }
    const id = Array.from({ length: idLength }, () => idAlphabet[randomInt(idAlphabet.length)]).join('')
    const language = runtime.languages[0]?.language ?? 'python'
    const context = new Context({
      about: { id, language, ...(name !== undefined && { name }), cwd: cwd ?? this.#sandbox.files.workdir, isDefault },
      runtime,
      timers: this.#timers,
      start: () => this.#interpreters.start({ runtime, cwd, env, signal: undefined }),
      hold: () => this.#sandbox.life.activity.hold(),
    })
    this.#contexts.set(id, context)
    try {
      await context.open()
      signal?.throwIfAborted()
      return context
    } catch (error) {
      this.#forget(id)
      await context.remove().catch(() => undefined)
      throw error
    }
  }

  #find(id: unknown): Context {
    const known = parseWith(contextIdSchema, id, 'context')
    const context = this.#contexts.get(known)
    if (!context) throw new SandboxError('not-found', `there is no context ${known} in sandbox ${this.#sandbox.info.id}`)
    return context
  }

  #forget(id: string): void {
    const context = this.#contexts.get(id)
    this.#contexts.delete(id)
    if (context?.info.isDefault) this.#defaults.delete(context.runtime.name)
  }

  /** The sandbox's own time. */
  get #timers(): Timers {
    const { clock } = this.#sandbox.life
    return { now: () => clock.now(), after: (ms, act) => new Deadline(ms, act, clock) }
  }
}

interface CodeTarget {
  readonly context?: string | undefined
  readonly language?: Language | undefined
}
