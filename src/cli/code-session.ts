/** Code of one user in one sandbox: executions one after another, with their questions, interrupts and files. */
import type { Artifact, CodeEnding, Language, PlatformExecution } from '../contract/code.js'
import type { Platform } from '../contract/platform.js'
import type { Answers } from './code-input.js'
import type { OutFolder } from './code-out.js'
import type { Showing } from './code-show.js'
import { type Interrupts, Stopped, untilAborted } from './interrupts.js'
import { say } from './print.js'

export interface SessionOptions {
  readonly platform: Platform
  readonly id: string
  readonly interrupts: Interrupts
  readonly showing: Showing
  readonly answers: Answers | undefined
  readonly cwd: string | undefined
}

export interface Piece {
  readonly code: string
  readonly language: Language
  readonly name: string
}

export class CodeSession {
  readonly #options: SessionOptions
  /** Of languages whose interpreters begin in a folder that was stated. */
  readonly #contexts = new Map<string, Promise<string>>()
  readonly #artifacts = new Map<string, Artifact>()

  constructor(options: SessionOptions) {
    this.#options = options
  }

  async run({ code, language, name }: Piece): Promise<CodeEnding> {
    const { platform, id, interrupts, showing, answers } = this.#options
    const { signal } = interrupts
    const context = await this.#contextOf(language)
    const request = { code, language, input: answers !== undefined, ...(context !== undefined && { context }) }
    const execution = await platform.code.execute(id, request, { signal })
    const gaveUp = this.#attach(execution)
    const shown = this.#show(execution)
    const ending = await Promise.race([shown.then(() => execution.ended), gaveUp, untilAborted(signal)]).finally(() => shown.catch(() => undefined))
    for (const artifact of ending.artifacts) this.#artifacts.set(artifact.path, artifact)
    await showing.end(ending, name)
    if (ending.resultsDropped !== undefined) say(`${ending.resultsDropped} more results were dropped; an execution has at most 10,000`)
    if (ending.outputDropped !== undefined) say(`${ending.outputDropped} bytes that it printed before it was killed were dropped`)
    if (ending.artifactsMissing !== undefined) say(`files that it made are not all known: ${ending.artifactsMissing}`)
    return ending
  }

  /** The first Ctrl-C interrupts, the second gives it up. */
  #attach(execution: PlatformExecution): Promise<never> {
    return new Promise((_, reject) => {
      this.#options.interrupts.attach({
        interrupt: () => void execution.interrupt().catch(() => undefined),
        kill: () => reject(new Stopped('SIGINT')),
      })
    })
  }

  async #show(execution: PlatformExecution): Promise<void> {
    for await (const event of execution.events) {
      if (event.type === 'ask') void this.#answer(execution, event)
      else await this.#options.showing.show(event)
    }
  }

  /** Beside the events: code that is interrupted while it waits for a line goes on without it. */
  async #answer(execution: PlatformExecution, question: { readonly prompt: string; readonly isSecret: boolean }): Promise<void> {
    const line = await this.#options.answers?.next(question)
    await execution.answer(line ?? null).catch(() => undefined)
  }

  #contextOf(language: Language): Promise<string | undefined> {
    const { platform, id, cwd, interrupts } = this.#options
    if (cwd === undefined) return Promise.resolve(undefined)
    const spoken = language === 'typescript' ? 'javascript' : language
    const known = this.#contexts.get(spoken) ?? platform.code.createContext(id, { language, cwd }, { signal: interrupts.signal }).then((context) => context.id)
    this.#contexts.set(spoken, known)
    return known
  }

  /** A new interpreter for the language, without the memory of the old one. */
  async restart(language: Language): Promise<void> {
    const { platform, id, interrupts } = this.#options
    const options = { signal: interrupts.signal }
    const own = await this.#contextOf(language)
    const spoken = (name: Language): string => (name === 'typescript' ? 'javascript' : name)
    const contexts = await platform.code.listContexts(id, options)
    const found = contexts.find((context) => (own === undefined ? context.isDefault && spoken(context.language) === spoken(language) : context.id === own))
    if (found) await platform.code.restartContext(id, found.id, options)
  }

  /** Takes over what the executions made, as it is now. */
  async writeArtifacts(out: OutFolder, { quiet, onFile }: { readonly quiet: boolean; readonly onFile?: (path: string) => void }): Promise<void> {
    const { platform, id, interrupts } = this.#options
    const files = platform.files.of(id)
    for (const artifact of this.#artifacts.values()) {
      const entry = await files.stat(artifact.path, { signal: interrupts.signal })
      if (entry?.type !== 'file') continue
      const path = await out.addArtifact(artifact, files, interrupts.signal)
      onFile?.(path)
      if (!quiet) say(`wrote ${path}`)
    }
    this.#artifacts.clear()
  }
}
