import { checkCallOptions } from '../contract/call-options.js'
import type { Artifact, CodeEnding, CodeError, CodeStatus, Language } from '../contract/code.js'
import type { CallOptions } from '../contract/platform.js'
import type { Outcome } from '../contract/run.js'
import type { Result } from './code-result.js'

export type ReadFile = (path: string, options: CallOptions) => Promise<Uint8Array>

/** A file below the workspace that an execution created or changed. */
export class CodeArtifact implements Artifact {
  readonly path: string
  readonly change: 'created' | 'changed'
  readonly size: number
  readonly mime: string
  readonly hash: string
  readonly #read: ReadFile

  constructor({ path, change, size, mime, hash }: Artifact, read: ReadFile) {
    this.path = path
    this.change = change
    this.size = size
    this.mime = mime
    this.hash = hash
    this.#read = read
  }

  /** Its bytes as they are now; whether they are still those of then is told by the hash. */
  async download(options: CallOptions = {}): Promise<Uint8Array> {
    return this.#read(this.path, checkCallOptions(options))
  }

  toJSON(): Artifact {
    const { path, change, size, mime, hash } = this
    return { path, change, size, mime, hash }
  }
}

/** What an execution printed and gave. */
export interface Gathered {
  readonly results: readonly Result[]
  readonly stdout: string
  readonly stderr: string
  readonly truncated: boolean
}

/** How code ended, with all that it gave. An error of the code is a value in here. */
export class Execution {
  readonly status: CodeStatus
  /** All values that it gave: those that it displayed, and that of its last expression. */
  readonly results: readonly Result[]
  /** As UTF-8; what is not is replaced by U+FFFD. */
  readonly stdout: string
  readonly stderr: string
  /** True when there was more output than this: than `limits.output` keeps, or than was read when it was killed. */
  readonly truncated: boolean
  /** Results that are not among `results`: there were more than 10,000, or nobody read them when it was killed. */
  readonly resultsDropped: number
  readonly error: CodeError | undefined
  /** Of code that asked to end, and of a shell's last command. */
  readonly code: number | undefined
  /** How the interpreter ended, where it did. */
  readonly outcome: Outcome | undefined
  /** Whether the context still has the memory that it had before. */
  readonly isStateKept: boolean
  readonly artifacts: readonly CodeArtifact[]
  /** Why artifacts are not, or not all, told. */
  readonly artifactsMissing: string | undefined
  /** The context's executions from 1; 0 when it did not begin. */
  readonly number: number
  readonly wallMs: number
  /** The id of the context that it ran in. */
  readonly context: string
  readonly language: Language

  constructor(ending: CodeEnding, { results, stdout, stderr, truncated }: Gathered, read: ReadFile) {
    this.status = ending.status
    this.results = results
    this.stdout = stdout
    this.stderr = stderr
    this.truncated = truncated || ending.outputDropped !== undefined
    this.resultsDropped = ending.resultsDropped ?? 0
    this.error = ending.error
    this.code = ending.code
    this.outcome = ending.outcome
    this.isStateKept = ending.isStateKept
    this.artifacts = ending.artifacts.map((artifact) => new CodeArtifact(artifact, read))
    this.artifactsMissing = ending.artifactsMissing
    this.number = ending.number
    this.wallMs = ending.wallMs
    this.context = ending.context
    this.language = ending.language
  }

  /** The value of the last expression as text. */
  get text(): string | undefined {
    return this.results.find(({ isMain }) => isMain)?.text
  }

  /** Plain values; binary forms of results are in base64. */
  toJSON(): Omit<{ -readonly [Key in keyof Execution]: Execution[Key] }, 'toJSON' | 'results' | 'artifacts'> & {
    results: ReturnType<Result['toJSON']>[]
    artifacts: Artifact[]
  } {
    const { status, text, stdout, stderr, truncated, resultsDropped, error, code, outcome, isStateKept, artifactsMissing, number, wallMs, context, language } =
      this
    const results = this.results.map((result) => result.toJSON())
    const artifacts = this.artifacts.map((artifact) => artifact.toJSON())
    const told = { status, text, results, resultsDropped, stdout, stderr, truncated, error, code, outcome, isStateKept, artifacts, artifactsMissing }
    return { ...told, number, wallMs, context, language }
  }
}
