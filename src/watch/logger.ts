/**
 * One JSON object a line: when, how grave, what, and a few facts by name. What looks like a secret is replaced where lines are made, so that no caller has to think of it.
 * A reader that does not keep up holds nobody up: lines are dropped, and the next one that is written says how many.
 */

export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

/** Few and flat: what has a structure is for the audit trail. */
export type LogFacts = Readonly<Record<string, string | number | boolean | undefined>>

export interface LogTarget {
  /** False when it takes no more for now. */
  write(line: string): boolean
  once(event: 'drain', listener: () => void): unknown
}

export interface LoggerOptions {
  readonly target: LogTarget
  /** Less grave ones are not written; `info` when not given. */
  readonly level?: LogLevel
  /** What a text may say in a log. */
  readonly redact: (text: string) => string
}

export interface Logger {
  debug(message: string, facts?: LogFacts): void
  info(message: string, facts?: LogFacts): void
  warn(message: string, facts?: LogFacts): void
  error(message: string, facts?: LogFacts): void
  /** The same with facts that every line has: the id of a request, say. */
  with(facts: LogFacts): Logger
}

/** Nothing that is logged needs more, and what is longer came from somebody else. */
const mostText = 2000
/** Whatever their values look like. */
const secretName = /authorization|cookie|secret|password|passwd|token|api[_-]?key|private[_-]?key/i

export function createLogger({ target, level = 'info', redact }: LoggerOptions): Logger {
  const least = logLevels.indexOf(level)
  const line = new Lines(target)
  const loggerWith = (common: LogFacts): Logger => {
    const at =
      (grave: LogLevel) =>
      (message: string, facts: LogFacts = {}): void => {
        if (logLevels.indexOf(grave) < least) return
        const told = { ...common, ...facts }
        line.write({ time: new Date().toISOString(), level: grave, message: cleaned(message, redact), ...cleanedFacts(told, redact) })
      }
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), with: (facts) => loggerWith({ ...common, ...facts }) }
  }
  return loggerWith({})
}

class Lines {
  readonly #target: LogTarget
  #isFull = false
  #dropped = 0

  constructor(target: LogTarget) {
    this.#target = target
  }

  write(fields: Readonly<Record<string, unknown>>): void {
    if (this.#isFull) {
      this.#dropped += 1
      return
    }
    const dropped = this.#dropped
    this.#dropped = 0
    if (this.#target.write(`${JSON.stringify(dropped > 0 ? { ...fields, dropped } : fields)}\n`)) return
    this.#isFull = true
    this.#target.once('drain', () => {
      this.#isFull = false
    })
  }
}

const ownNames = ['time', 'level', 'message', 'dropped']

function cleanedFacts(facts: LogFacts, redact: (text: string) => string): Readonly<Record<string, string | number | boolean>> {
  const cleanedOnes: Record<string, string | number | boolean> = {}
  for (const [name, value] of Object.entries(facts)) {
    if (value === undefined || ownNames.includes(name)) continue
    if (secretName.test(name)) cleanedOnes[name] = '(redacted)'
    else cleanedOnes[name] = typeof value === 'string' ? cleaned(value, redact) : value
  }
  return cleanedOnes
}

function cleaned(text: string, redact: (text: string) => string): string {
  // A secret that was cut in half would not be known for one.
  const safe = redact(text.slice(0, 2 * mostText))
  return safe.length > mostText ? `${safe.slice(0, mostText)}…` : safe
}
