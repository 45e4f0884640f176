import type { PlatformCode } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import type { Outcome } from '../contract/run.js'
import type { Runtime } from '../interpreter/index.js'
import type { AsideProcess } from './aside-process.js'
import type { LiveSandbox } from './live-sandbox.js'

export type LanguageAnswer = Awaited<ReturnType<PlatformCode['languages']>>[keyof Awaited<ReturnType<PlatformCode['languages']>>]

export interface KernelStart {
  readonly runtime: Runtime
  readonly cwd: string | undefined
  readonly env: Readonly<Record<string, string>>
  readonly signal: AbortSignal | undefined
}

const mostVersionBytes = 4096
/** Templates that have what a kernel needs, for hints. */
const templates: Readonly<Record<string, string>> = { python: 'python', node: 'node', shell: 'shell' }

/** Which interpreters a sandbox has, found by trying, and the start of kernels in them. */
export class Interpreters {
  readonly #sandbox: LiveSandbox
  readonly #known = new Map<string, string>()
  readonly #answers = new Map<string, Promise<LanguageAnswer>>()

  constructor(sandbox: LiveSandbox) {
    this.#sandbox = sandbox
  }

  /** Throws SandboxError('unsupported') when there is no interpreter for it. */
  async start({ runtime, cwd, env, signal }: KernelStart): Promise<AsideProcess> {
    const known = this.#known.get(runtime.name)
    const failures: string[] = []
    for (const interpreter of known === undefined ? runtime.interpreters : [known]) {
      const command = [interpreter, ...runtime.argv]
      const process = await this.#sandbox.startAside({ command, env: { ...runtime.env, ...env }, ...(cwd !== undefined && { cwd }) }, signal)
      if (process.pid !== 0) {
        this.#known.set(runtime.name, interpreter)
        return process
      }
      const { outcome } = await process.ended
      if (outcome.kind !== 'not-started') return process
      failures.push(outcome.reason)
    }
    this.#known.delete(runtime.name)
    throw this.#missing(runtime, failures)
  }

  /** Asked once for each kernel; what failed for another reason is asked again. */
  answer(runtime: Runtime): Promise<LanguageAnswer> {
    const known = this.#answers.get(runtime.name)
    if (known) return known
    const asking = this.#ask(runtime)
    this.#answers.set(runtime.name, asking)
    asking.catch(() => this.#answers.delete(runtime.name))
    return asking
  }

  async #ask(runtime: Runtime): Promise<LanguageAnswer> {
    const failures: string[] = []
    for (const interpreter of runtime.interpreters) {
      const { outcome, text } = await this.#run([interpreter, '--version'])
      const version = /\d+(?:\.\d+)+/.exec(text)?.[0]
      if (outcome.kind === 'exited' && outcome.code === 0 && version !== undefined) return { available: true, version }
      failures.push(outcome.kind === 'not-started' ? outcome.reason : `${interpreter} does not tell its version`)
    }
    return { available: false, why: this.#missing(runtime, failures).message }
  }

  async #run(command: readonly string[]): Promise<{ readonly outcome: Outcome; readonly text: string }> {
    const program = await this.#sandbox.start({ command, output: { limit: mostVersionBytes, onLimit: 'truncate' } }, undefined)
    const pieces: Uint8Array[] = []
    for await (const { bytes } of program.output) pieces.push(bytes)
    const { outcome } = await program.ended
    return { outcome, text: Buffer.concat(pieces).toString('latin1') }
  }

  #missing({ name, languages }: Runtime, failures: readonly string[]): SandboxError {
    const { template } = this.#sandbox.info.spec
    const words = languages.map(({ language }) => language).join(' and ')
    const hint = `Sandbox.create({ template: '${templates[name] ?? name}' })`
    return new SandboxError('unsupported', `template '${template}' has no interpreter of ${words}: ${[...new Set(failures)].join('; ')}`, { hint })
  }
}
