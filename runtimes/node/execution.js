// One execution: from source to script, its evaluation, and how it ended.
import { describeError, describeInterrupt, describeSyntaxError } from './errors.js'
import { writeFrame } from './frames.js'
import { withEnvironment } from './guard.js'
import { plainText } from './plain-text.js'
import { bundleAs, bundleOf, encodeBundle } from './show.js'
import { translate } from './translate.js'
import { stripTypes } from './typescript.js'

const defaultResultBytes = 10_485_760

export class Execution {
  #parts
  #request
  #onOver
  #isOver = false
  #exitCode
  #asking
  #restoreEnv

  constructor(parts, request, onOver) {
    this.#parts = parts
    this.#request = request
    this.#onOver = onOver
  }

  get token() {
    return this.#request.token
  }

  get number() {
    return this.#request.number
  }

  get name() {
    return `code-${this.number}.${this.#request.options.get('language') === 'typescript' ? 'ts' : 'js'}`
  }

  run() {
    const { signals, output, globals, surface, system } = this.#parts
    globals.restore()
    output.restore()
    surface.restore()
    this.#restoreEnv = withEnvironment(system.env, this.#request.env)
    signals.begin()
    signals.awaiting()
    output.begin(this.token)
    const script = this.#scriptOf(this.#request.source)
    if (script === undefined) return
    globals.declare(script.names)
    this.#evaluate(script.code)
  }

  /** @returns {{ code: string, names: string[] } | undefined} nothing when the source is none, and it was said */
  #scriptOf(source) {
    const { sources } = this.#parts
    const same = (line, column) => ({ line, column })
    sources.add(this.number, { source, name: this.name, placeOf: same })
    const isTyped = this.#request.options.get('language') === 'typescript'
    let stripped = { code: source, placeOf: same, isGenerated: false }
    try {
      if (isTyped) stripped = stripTypes(this.#parts.stripper(), source)
      const { code, names, placeOf } = translate(stripped.code, stripped)
      const back = (line, column) => {
        const place = placeOf(line, column)
        return stripped.placeOf(place.line, place.column)
      }
      sources.add(this.number, { source, name: this.name, placeOf: back })
      return { code, names }
    } catch (error) {
      // The engine's own parser has the better words, and knows syntax that ours does not; it cannot take what needs translation.
      if (error.pos !== undefined && !/\b(?:import|export)\b/.test(stripped.code)) {
        sources.add(this.number, { source, name: this.name, placeOf: stripped.placeOf })
        return { code: stripped.code, names: [] }
      }
      this.#fail(() => describeSyntaxError(error, { sources, number: this.number, at: placeIn(error, stripped.placeOf) }))
      return undefined
    }
  }

  #evaluate(code) {
    const { session, signals } = this.#parts
    signals.running()
    const expression = `${code}\n//# sourceURL=${this.name}`
    session.post('Runtime.evaluate', { expression, replMode: true, awaitPromise: true, silent: true }, (error, answer) => this.#evaluated(error, answer))
    if (!this.#isOver) signals.awaiting()
  }

  #evaluated(error, answer) {
    if (this.#isOver) return
    if (this.#exitCode !== undefined) return this.#finish({ status: 'exit', code: this.#exitCode })
    if (error) return this.#interrupted()
    const { exceptionDetails } = answer
    if (exceptionDetails === undefined) return this.#finish({ status: 'ok' })
    this.#thrown(exceptionDetails)
  }

  /** What was thrown is looked at within an evaluation too: it may have getters, and they may never end. */
  #thrown({ exception, ...details }) {
    const { session, signals, surface } = this.#parts
    signals.running()
    const value = exception?.objectId === undefined ? valueOf(exception) : { objectId: exception.objectId }
    const description = { isDone: false }
    surface.describe = (thrown) => {
      description.error = this.#describe(thrown, details)
      description.isDone = true
    }
    const question = { functionDeclaration: 'function (thrown) { __glovebox.describe(thrown) }', arguments: [value], silent: true }
    session.post('Runtime.evaluate', { expression: 'globalThis' }, (_, answer) => {
      const { objectId } = answer.result
      session.post('Runtime.callFunctionOn', { ...question, objectId }, () => {
        if (description.isDone) this.#finish({ status: 'error', error: description.error })
        else if (this.#exitCode !== undefined) this.#finish({ status: 'exit', code: this.#exitCode })
        else this.#interrupted()
      })
    })
  }

  #describe(thrown, { lineNumber, columnNumber, url, stackTrace }) {
    const { system, sources } = this.#parts
    const error = describeError(system, thrown, { sources, number: this.number })
    // Source that does not parse has a place, and was never anywhere.
    const isUnparsed = error.name === 'SyntaxError' && error.line === undefined && url === undefined && stackTrace === undefined
    if (!isUnparsed) return error
    const at = sources.get(this.number).placeOf(lineNumber + 1, columnNumber + 1)
    return describeSyntaxError({ name: error.name, message: error.value }, { sources, number: this.number, at })
  }

  /** Called again and again: whether an interrupt or an exit ended code that no longer runs. */
  check(isAsked) {
    if (this.#isOver) return
    if (this.#exitCode !== undefined) this.#finish({ status: 'exit', code: this.#exitCode })
    else if (isAsked) this.#interrupted()
  }

  #interrupted() {
    this.#fail(describeInterrupt)
  }

  /** An exception that nobody caught, in a callback of this execution's. */
  uncaught(error) {
    this.#finish({ status: 'error', error })
  }

  #fail(describe) {
    this.#finish({ status: 'error', error: describe() })
  }

  exit(code) {
    this.#exitCode ??= code
  }

  #finish(ending) {
    const { signals, output, system } = this.#parts
    signals.whole(() => {
      if (this.#isOver) return
      this.#isOver = true
      this.#asking?.(null)
      this.#restoreEnv()
      const mark = output.mark()
      output.end()
      const { status, ...rest } = ending
      this.#onOver()
      writeFrame(system, { type: 'done', token: this.token, json: JSON.stringify({ mark, status, number: this.number, ...rest }) })
      signals.end()
    })
  }

  /** @param {{ isMain: boolean, type?: string }} how */
  show(value, { isMain, type }) {
    const { system, signals, output } = this.#parts
    const mostBytes = Number(this.#request.options.get('result-bytes') ?? defaultResultBytes)
    const bundle = type === undefined ? bundleOf(system, value) : bundleAs(value, type)
    const given = bundle.get('text/plain')
    const { text, isCut } = typeof given === 'string' ? { text: given, isCut: false } : plainText(system, value, mostBytes)
    const { data, cut } = encodeBundle(system, bundle, { text, isCut, mostBytes })
    signals.whole(() => {
      if (this.#isOver) return
      const mark = output.mark()
      writeFrame(system, { type: 'result', token: this.token, json: `{"mark":${mark},"main":${isMain},"data":${data},"cut":${JSON.stringify(cut)}}` })
    })
  }

  ask(prompt, isSecret) {
    const { system, signals, output } = this.#parts
    if (this.#request.options.get('input') !== 'asked') throw new system.global.Error('input was refused: this execution has nobody to ask')
    if (this.#asking !== undefined) throw new system.global.Error('input is being asked for already')
    return new Promise((resolve) => {
      this.#asking = resolve
      signals.whole(() => {
        const mark = output.mark()
        writeFrame(system, { type: 'ask', token: this.token, json: JSON.stringify({ mark, prompt, secret: isSecret }) })
      })
    })
  }

  answer(line) {
    const resolve = this.#asking
    this.#asking = undefined
    resolve?.(line)
  }
}

/** A thrown primitive, as an argument of a call. */
function valueOf(exception) {
  if (exception?.unserializableValue !== undefined) return { unserializableValue: exception.unserializableValue }
  return exception?.type === 'undefined' ? {} : { value: exception?.value ?? null }
}

function placeIn(error, placeOf) {
  if (error.loc === undefined) return undefined
  return placeOf(error.loc.line, error.loc.column + 1)
}
