// What went wrong, in the user's words and lines.
import { lineOf } from './positions.js'
import { messageOf, plainText } from './plain-text.js'

const mostCharacters = 65_536
const frameLine = /^ {4}at /
const place = /(code-(\d+)\.[jt]s):(\d+):(\d+)/g
/** Frames of Node, of the kernel, of the inspector that evaluates, and of packages. */
const foreign =
  /\(?(?:node:|glovebox:|inspector:\/\/|native\b)|\/node_modules\/|^ {4}at (?:async )?Session\.post|^ {4}at new Promise \(<anonymous>\)|<anonymous>\)?$/

/** Of the kernel itself, which are in nobody's traceback. */
const ours = /^ *at .*(?:\(glovebox:|Session\.post \(node:inspector|FSReqCallback\.wrapper \[as oncomplete\]|^ *at glovebox:)|^ *at glovebox:/

const bounded = (text) => (text.length > mostCharacters ? `${text.slice(0, mostCharacters - 2)}…` : text)

/** Sources by the number of their execution: the last ones, for the places in what they left behind. */
export class Sources {
  #sources = new Map()

  add(number, { source, placeOf, name }) {
    this.#sources.set(number, { source, placeOf, name })
    if (this.#sources.size > 500) this.#sources.delete(this.#sources.keys().next().value)
  }

  get(number) {
    return this.#sources.get(number)
  }

  /** @param {string} text in which places are those of scripts @returns {string} in which they are those of the user's source */
  mapped(text) {
    return text.replace(place, (...found) => {
      const [whole, name, number, line, column] = found
      const unit = this.#sources.get(Number(number))
      if (unit === undefined) return whole
      const original = unit.placeOf(Number(line), Number(column))
      return `${name}:${original.line}:${original.column}`
    })
  }
}

/** @returns {object} `error` of `done` */
export function describeError(system, thrown, { sources, number }) {
  if (!isError(system, thrown)) return describeValue(system, thrown)
  const { name, message, stack } = readError(system, thrown)
  const title = message === '' ? name : `${name}: ${message}`
  const full = sources
    .mapped(fullText(system, thrown, stack))
    .split('\n')
    .filter((line) => !ours.test(line))
    .join('\n')
  const frames = sources
    .mapped(stack)
    .split('\n')
    .filter((line) => frameLine.test(line))
  const own = frames.filter((frame) => !foreign.test(frame))
  // The place of an earlier execution's code is no line of this one.
  const [, , , line, column] = own.flatMap((frame) => [...frame.matchAll(place)]).find((found) => Number(found[2]) === number) ?? []
  const traceback = [...excerpt(sources.get(number), line, column), title, ...own].join('\n')
  return {
    name: bounded(name).slice(0, 200),
    value: bounded(message),
    traceback: bounded(traceback),
    full: bounded(full),
    ...(line === undefined ? {} : { line: Number(line), column: Number(column) }),
  }
}

/** @returns {object} of source that is none */
export function describeSyntaxError(thrown, { sources, number, at }) {
  const message = String(thrown.message ?? '').replace(/ \(\d+:\d+\)$/, '')
  const title = `${thrown.name ?? 'SyntaxError'}: ${message}`
  const text = bounded([...excerpt(sources.get(number), at?.line, at?.column), title].join('\n'))
  return { name: thrown.name ?? 'SyntaxError', value: bounded(message), traceback: text, full: text, ...(at === undefined ? {} : at) }
}

export function describeInterrupt() {
  const value = 'the execution was interrupted'
  return { name: 'KeyboardInterrupt', value, traceback: `KeyboardInterrupt: ${value}`, full: `KeyboardInterrupt: ${value}` }
}

function describeValue(system, thrown) {
  const value = bounded(plainText(system, thrown, mostCharacters).text)
  return { name: 'Uncaught', value, traceback: bounded(`Uncaught ${value}`), full: bounded(`Uncaught ${value}`) }
}

function isError(system, thrown) {
  try {
    return system.types.isNativeError(thrown) || (typeof thrown === 'object' && typeof thrown?.stack === 'string' && typeof thrown.message === 'string')
  } catch {
    return false
  }
}

function readError(system, thrown) {
  const read = (key, otherwise) => {
    try {
      const value = thrown[key]
      return typeof value === 'string' ? value : otherwise
    } catch {
      return otherwise
    }
  }
  const message = read('message', '')
  return { name: read('name', '') || 'Error', message, stack: read('stack', messageOf(system, thrown)) }
}

/** With causes and further fields, as Node prints an error. */
function fullText(system, thrown, stack) {
  try {
    const text = system.inspect(thrown, { depth: 3, maxStringLength: mostCharacters })
    return typeof text === 'string' ? text : stack
  } catch {
    return stack
  }
}

const mostOfLine = 160

function excerpt(unit, line, column) {
  if (unit === undefined || line === undefined) return []
  const text = lineOf(unit.source, Number(line))
  if (text === undefined) return []
  // A long line is shown around the place.
  const from = Math.max(0, Number(column) - 1 - mostOfLine / 2)
  const shown = text.slice(from, from + mostOfLine)
  const caret = shown.slice(0, Math.max(0, Number(column) - 1 - from)).replace(/[^\t]/g, ' ')
  return [`${unit.name}:${line}`, shown, `${caret}^`, '']
}
