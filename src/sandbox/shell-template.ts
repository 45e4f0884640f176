import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import type { RunRequest } from '../contract/run.js'
import { type Evaluation, evaluationBetween, valueMark } from './shell-evaluated.js'
import { afterValue, placeAfter, shellStart } from './shell-quotes.js'
import type { RunResult } from './run.js'

/** What may stand in a command: one word, or a word for each of an array. */
export type ShellWord = string | number | readonly (string | number)[]

/** How a command ended, and what it printed. */
export interface ShellResult extends RunResult {
  /** stdout without the line breaks at its end, as a shell's own `$(…)` has it. */
  text(): string
  /** stdout line by line, without their breaks. */
  lines(): string[]
}

/** A command that did not exit with 0; its result tells what happened. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly result: ShellResult

  constructor(command: string, result: ShellResult) {
    const lastWords = result.stderr.trimEnd().split('\n').at(-1)?.slice(0, 300) ?? ''
    super(`${shorten(command)}: ${howItEnded(result)}${lastWords === '' ? '' : `: ${lastWords}`}`)
    this.result = result
  }
}

type RunShell = (command: string, options: Pick<RunRequest, 'cwd' | 'env'>) => PromiseLike<RunResult>

/** A command of the shell's: started in a microtask, so that what is said of it in the same expression holds. */
export class ShellCommand implements PromiseLike<ShellResult> {
  // biome-ignore lint/suspicious/noThenProperty: a command is awaited for its result
  readonly then: Promise<ShellResult>['then'] = (onResult, onError) => this.#result.then(onResult, onError)
  readonly catch: Promise<ShellResult>['catch'] = (onError) => this.#result.catch(onError)
  readonly finally: Promise<ShellResult>['finally'] = (onSettled) => this.#result.finally(onSettled)
  readonly #result: Promise<ShellResult>
  #options: Pick<RunRequest, 'cwd' | 'env'> = {}
  #mayFail = false
  #hasStarted = false

  /** What is wrong with the command rejects, as everything else does. */
  constructor(compose: () => string, run: RunShell) {
    this.#result = Promise.resolve().then(async () => {
      this.#hasStarted = true
      const command = compose()
      const result = shellResult(await run(command, this.#options))
      if (result.exitCode === 0 || this.#mayFail) return result
      throw new CommandError(command, result)
    })
    // Someone who does not look is not to be told by a crash, as with a run.
    this.#result.catch(() => undefined)
  }

  /** Whatever its exit code, it is a result. */
  nothrow(): this {
    this.#checkNew()
    this.#mayFail = true
    return this
  }

  cwd(path: string): this {
    this.#checkNew()
    this.#options = { ...this.#options, cwd: path }
    return this
  }

  env(variables: Readonly<Record<string, string>>): this {
    this.#checkNew()
    this.#options = { ...this.#options, env: { ...this.#options.env, ...variables } }
    return this
  }

  async text(): Promise<string> {
    return (await this.#result).text()
  }

  async lines(): Promise<string[]> {
    return (await this.#result).lines()
  }

  #checkNew(): void {
    if (this.#hasStarted) throw new SandboxError('conflict', 'the command has started already')
  }
}

/**
 * The text of a command with every value as one word, whatever is in it. What stands in the template is the shell's, backslashes included. A value
 * that the shell would not take as a word – inside quotes, in a comment, after `$` or in what follows `<<` – is refused: SandboxError('invalid').
 */
export function shellCommand(template: TemplateStringsArray, values: readonly ShellWord[]): string {
  if (!isTemplate(template)) throw new SandboxError('invalid', `$: expected a template, as in sandbox.$\`ls\`, got ${kindOf(template)}`)
  let command = ''
  let seen = ''
  let place = shellStart
  template.raw.forEach((text, index) => {
    command += text
    seen += text
    place = placeAfter(place, text)
    if (index === template.raw.length - 1) return
    if (place.kind !== 'words') throw new SandboxError('invalid', `value ${index + 1} stands ${place.where}, where it cannot be made one word`)
    const evaluation = evaluationBetween(seen, template.raw[index + 1] ?? '')
    command += evaluation ? numberFor(values[index], index, evaluation) : wordsOf(values[index], index)
    seen += valueMark
    place = afterValue
  })
  return command
}

function isTemplate(value: unknown): boolean {
  return Array.isArray(value) && Array.isArray((value as Partial<TemplateStringsArray>).raw)
}

/** Bare, for there quotes are no quotes; a space keeps a sign apart from another. */
function numberFor(value: unknown, index: number, { where, takesNumbers }: Evaluation): string {
  if (takesNumbers && Number.isSafeInteger(value)) return Number(value) < 0 && where === 'in arithmetic' ? ` ${String(value)}` : String(value)
  const instead = takesNumbers ? 'give it as a whole number' : 'give it by .env({ NAME: value }) and write "$NAME" where a word is meant'
  throw new SandboxError('invalid', `value ${index + 1} stands ${where}, where the shell evaluates it once more; ${instead}`)
}

function wordsOf(value: unknown, index: number): string {
  return Array.isArray(value) ? value.map((each) => quoted(each, index)).join(' ') : quoted(value, index)
}

function quoted(value: unknown, index: number): string {
  if (typeof value === 'number' && Number.isFinite(value)) return `'${value}'`
  if (typeof value !== 'string') throw new SandboxError('invalid', `value ${index + 1}: expected a string, a number or an array of these, got ${kindOf(value)}`)
  if (value.includes('\0')) throw new SandboxError('invalid', `value ${index + 1}: must not contain a NUL character`)
  if (/\p{Surrogate}/u.test(value)) throw new SandboxError('invalid', `value ${index + 1}: has half a character, which no bytes stand for`)
  return `'${value.replaceAll("'", String.raw`'\''`)}'`
}

function shellResult(result: RunResult): ShellResult {
  const { stdout } = result
  return {
    ...result,
    text: () => stdout.replace(/\n+$/, ''),
    lines: () => (stdout === '' ? [] : stdout.replace(/\n$/, '').split('\n')),
  }
}

function howItEnded({ outcome }: RunResult): string {
  switch (outcome.kind) {
    case 'exited':
      return `exited with ${outcome.code}`
    case 'signaled':
      return `was ended by ${outcome.signal}`
    case 'killed':
    case 'not-started':
      return `${outcome.kind === 'killed' ? 'was killed' : 'did not start'}: ${outcome.reason}`
    default:
      return `ended as ${outcome.kind}`
  }
}

function shorten(command: string): string {
  const line = command.trim().replace(/\s+/g, ' ')
  return line.length > 120 ? `${line.slice(0, 120)}…` : line
}
