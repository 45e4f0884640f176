import type { CodeEnding, PlatformExecution } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess, SandboxInfo } from '../contract/platform.js'
import type { OneShot } from '../contract/pools.js'
import type { Ending } from '../contract/run.js'
import type { Meters } from './meters.js'
import type { Spans, WatchedSpan } from './spans.js'

export type RunKind = 'run' | 'process' | 'one-shot'

/** What is noted of the calls of a platform. Nothing of it changes what a call gives back. */
export class Observer {
  readonly #meters: Meters | undefined
  readonly #spans: Spans | undefined

  constructor({ meters, spans }: { readonly meters?: Meters | undefined; readonly spans?: Spans | undefined }) {
    this.#meters = meters
    this.#spans = spans
  }

  /** A call that makes a sandbox. */
  async create<Made>(call: string, act: () => Promise<Made>, infosOf: (made: Made) => readonly SandboxInfo[]): Promise<Made> {
    const begin = performance.now()
    const span = this.#spans?.begin('glovebox.create', { 'glovebox.call': call })
    try {
      const made = await act()
      const seconds = (performance.now() - begin) / 1000
      for (const info of infosOf(made)) {
        this.#meters?.creates.observe(seconds, { call, driver: info.driver, pool: info.pool ?? 'none' })
        span?.of(info)
      }
      span?.end()
      return made
    } catch (error) {
      span?.fail(error)
      throw error
    }
  }

  async start(kind: RunKind, sandbox: string, act: () => Promise<PlatformProcess>): Promise<PlatformProcess> {
    const begin = performance.now()
    const span = this.#spans?.begin('glovebox.run', { 'glovebox.sandbox': sandbox, 'glovebox.kind': kind })
    span?.in(sandbox)
    try {
      const program = await act()
      this.#meters?.starts.observe((performance.now() - begin) / 1000, { kind })
      this.#follow(kind, program, span)
      return program
    } catch (error) {
      span?.fail(error)
      throw error
    }
  }

  /** A sandbox and its one program at once. */
  async oneShot(act: () => Promise<OneShot>): Promise<OneShot> {
    const begin = performance.now()
    const span = this.#spans?.begin('glovebox.run', { 'glovebox.kind': 'one-shot' })
    try {
      const shot = await act()
      const { driver, pool = 'none' } = shot.sandbox
      this.#meters?.creates.observe((performance.now() - begin) / 1000, { call: 'run', driver, pool })
      span?.of(shot.sandbox)
      span?.in(shot.sandbox.id)
      this.#follow('one-shot', shot.program, span)
      return shot
    } catch (error) {
      span?.fail(error)
      throw error
    }
  }

  async execute(sandbox: string, act: () => Promise<PlatformExecution>): Promise<PlatformExecution> {
    const span = this.#spans?.begin('glovebox.execution', { 'glovebox.sandbox': sandbox })
    span?.in(sandbox)
    try {
      const execution = await act()
      execution.ended.then(
        (ending) => this.#executed(ending, span),
        (error: unknown) => span?.fail(error),
      )
      return execution
    } catch (error) {
      span?.fail(error)
      throw error
    }
  }

  /** Whatever went wrong, by the call that it was told to. */
  failed(call: string, error: unknown): void {
    this.#meters?.errors.add({ call, code: codeOf(error) })
  }

  #follow(kind: RunKind, program: PlatformProcess, span: WatchedSpan | undefined): void {
    program.ended.then(
      (ending) => this.#ended(kind, ending, span),
      (error: unknown) => {
        this.failed('ended', error)
        span?.fail(error)
      },
    )
  }

  #ended(kind: RunKind, { outcome, usage }: Ending, span: WatchedSpan | undefined): void {
    this.#meters?.runs.add({ kind, outcome: outcome.kind })
    this.#meters?.runTimes.observe(usage.wallMs / 1000, { kind })
    span?.end({ 'glovebox.outcome': outcome.kind, ...(outcome.kind === 'exited' && { 'process.exit.code': outcome.code }) })
  }

  #executed({ language, status, wallMs }: CodeEnding, span: WatchedSpan | undefined): void {
    this.#meters?.executions.add({ language, status })
    this.#meters?.executionTimes.observe(wallMs / 1000, { language })
    span?.end({ 'glovebox.language': language, 'glovebox.status': status })
  }
}

/** A caller that called off is nobody's failure; anything that is no error of the table is a defect. */
function codeOf(error: unknown): string {
  if (error instanceof SandboxError) return error.code
  return error instanceof Error && error.name === 'AbortError' ? 'aborted' : 'other'
}
