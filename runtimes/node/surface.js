// What code finds in its global object that plain Node does not have, and what it finds changed: `display`, `input`, `require`, `process.exit`.
import { describeError } from './errors.js'

const shorthands = {
  html: 'text/html',
  markdown: 'text/markdown',
  svg: 'image/svg+xml',
  png: 'image/png',
  jpeg: 'image/jpeg',
  latex: 'text/latex',
  json: 'application/json',
}

export class Surface {
  #parts
  #current
  /** Of what was thrown; set by the execution that asks. */
  describe = () => {}

  constructor(parts, current) {
    this.#parts = parts
    this.#current = current
    const { system } = parts
    this.#defineHooks()
    const display = this.#makeDisplay()
    const input = async (prompt = '', options = {}) => this.#ask(prompt, options)
    for (const [name, value] of Object.entries({ require: parts.modules.require, display, input, prompt: input })) {
      Object.defineProperty(system.global, name, { value, writable: true, configurable: true, enumerable: false })
    }
    system.process.execArgv = []
    system.global.Error.stackTraceLimit = 50
    this.restore()
    system.process.setUncaughtExceptionCaptureCallback((error) => this.#uncaught(error))
  }

  restore() {
    const { process } = this.#parts.system
    const exit = (code) => this.#exit(code ?? process.exitCode ?? 0)
    try {
      Object.defineProperty(process, 'exit', { value: exit, writable: true, configurable: true, enumerable: true })
    } catch {
      // Code made it unchangeable: then it ends the kernel, and a new one is started.
    }
  }

  /** One name, which code can neither delete nor replace, is what translated source calls. */
  #defineHooks() {
    const { modules, system } = this.#parts
    const hooks = {
      show: (value) => {
        if (value !== undefined) this.#show(value, { isMain: true })
      },
      import: (...given) => modules.import(...given),
      importNames: (...given) => modules.importNames(...given),
      describe: (thrown) => this.describe(thrown),
      get meta() {
        return modules.meta
      },
    }
    Object.defineProperty(system.global, '__glovebox', { value: Object.freeze(hooks), writable: false, configurable: false, enumerable: false })
  }

  #makeDisplay() {
    const display = (value, how) => {
      const type = typeof how === 'string' ? how : how?.mime
      if (type !== undefined && !/^[\w.+-]+\/[\w.+-]+$/.test(type)) throw new this.#parts.system.global.TypeError(`display: ${String(type)} is no MIME type`)
      this.#show(value, { isMain: false, ...(type === undefined ? {} : { type }) })
    }
    for (const [name, type] of Object.entries(shorthands)) display[name] = (value) => display(value, type)
    return display
  }

  #show(value, how) {
    const execution = this.#current()
    if (execution !== undefined) return execution.show(value, how)
    // Nobody waits for results between two executions.
    const { system } = this.#parts
    system.process.stdout.write(`${system.inspect(value)}\n`)
  }

  #ask(prompt, { secret = false }) {
    const execution = this.#current()
    if (execution === undefined) throw new this.#parts.system.global.Error('input was refused: no execution is under way')
    return execution.ask(String(prompt), secret === true)
  }

  /** Ends the code that called it as nothing that it could catch, and the execution with it. */
  #exit(code) {
    const { session, system } = this.#parts
    const execution = this.#current()
    if (execution === undefined) this.tell(`process.exit(${String(code)}) was called when no execution was under way`)
    execution?.exit(Math.trunc(Number(code)) & 255)
    system.setTimeout(() => execution?.check(false), 0)
    session.post('Runtime.terminateExecution')
    for (;;);
  }

  #uncaught(error) {
    const { system, sources } = this.#parts
    if (system.process.listenerCount('uncaughtException') > 0) return system.process.emit('uncaughtException', error, 'uncaughtException')
    const execution = this.#current()
    const described = describeError(system, error, { sources, number: execution?.number ?? 0 })
    // An error of the code that runs ends it, as it would end a script; of code that ran before, it is told.
    const origins = Array.from(described.full.matchAll(/code-(\d+)\.[jt]s/g), ([, number]) => Number(number))
    if (execution !== undefined && (origins.length === 0 || origins.includes(execution.number))) execution.uncaught(described)
    else this.tell(`Uncaught ${described.full}`)
  }

  tell(text) {
    this.#parts.system.process.stderr.write(`${text}\n`)
  }
}
