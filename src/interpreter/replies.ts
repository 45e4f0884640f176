/** What the replies of a kernel say, judged. */
import type { CodeError, CodeResult } from '../contract/code.js'
import { KernelFault } from './frames.js'

export interface Ready {
  readonly language: string
  readonly version: string
}

export interface ResultReply {
  readonly mark: number
  readonly result: CodeResult
  /** What it takes here beyond the bytes that were sent. */
  readonly extraBytes: number
}

export interface AskReply {
  readonly mark: number
  readonly prompt: string
  readonly isSecret: boolean
}

export interface DoneReply {
  readonly mark: number
  readonly status: 'ok' | 'error' | 'exit'
  readonly code?: number
  readonly error?: CodeError
}

const mostTextCharacters = 65_536
const mostTypes = 64
/** What is nested deeper is no value that anyone could print again. */
const deepest = 500
/** Of objects and arrays in one value: three bytes are enough to send one. */
const mostObjects = 250_000
const bytesPerObject = 64
const mimePattern = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,62}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/i
const base64Pattern = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const binaryTypes: readonly string[] = ['image/png', 'image/jpeg', 'application/pdf']

export function parseReady(payload: Uint8Array): Ready {
  const { language, version } = objectIn(payload, 'ready')
  if (typeof language !== 'string' || typeof version !== 'string' || version.length > 100) throw new KernelFault("its 'ready' names no language and version")
  return { language, version }
}

export function parseResult(payload: Uint8Array): ResultReply {
  const { mark, main, data, cut = [] } = objectIn(payload, 'result')
  if (typeof main !== 'boolean' || !isObject(data) || !Array.isArray(cut)) throw new KernelFault("its 'result' has no main, data or cut")
  if (typeof data['text/plain'] !== 'string') throw new KernelFault("its 'result' has no text/plain")
  const told = (cut as unknown[]).filter((type): type is string => typeof type === 'string' && mimePattern.test(type)).slice(0, mostTypes)
  const known = Object.entries(data)
    .filter(([type]) => mimePattern.test(type))
    .slice(0, mostTypes)
  const judged = known.map(([type, value]) => ({ type, value, objects: objectsOf(type, value) }))
  const fitting = judged.filter(({ objects }) => objects !== undefined)
  const unfit = judged.filter(({ objects }) => objects === undefined).map(({ type }) => type)
  const extraBytes = fitting.reduce((sum, { objects = 0 }) => sum + objects, 0) * bytesPerObject
  const fit = Object.fromEntries(fitting.map(({ type, value }) => [type, value]))
  return { mark: markOf(mark), result: { isMain: main, data: fit, cut: [...new Set([...told, ...unfit])] }, extraBytes }
}

/** Of how many objects and arrays it is made. Undefined for a value that is not what its type says: it is left out and told, rather than handed on. */
function objectsOf(type: string, value: unknown): number | undefined {
  if (type.endsWith('json')) return countObjects(value)
  if (typeof value !== 'string') return undefined
  return !binaryTypes.includes(type) || base64Pattern.test(value) ? 0 : undefined
}

export function parseAsk(payload: Uint8Array): AskReply {
  const { mark, prompt, secret = false } = objectIn(payload, 'ask')
  if (typeof prompt !== 'string' || typeof secret !== 'boolean') throw new KernelFault("its 'ask' has no prompt")
  return { mark: markOf(mark), prompt: prompt.slice(0, mostTextCharacters), isSecret: secret }
}

const statuses = ['ok', 'error', 'exit'] as const

export function parseDone(payload: Uint8Array): DoneReply {
  const { mark, status, number, code, error } = objectIn(payload, 'done')
  const known = statuses.find((each) => each === status)
  if (known === undefined || !isCount(number)) throw new KernelFault("its 'done' has no status or number")
  if (code !== undefined && !Number.isInteger(code)) throw new KernelFault("its 'done' has a code that is no number")
  if ((known === 'error') !== isObject(error)) throw new KernelFault("its 'done' has an error exactly when it should have none")
  return {
    mark: markOf(mark),
    status: known,
    ...(typeof code === 'number' && { code }),
    ...(isObject(error) && { error: errorOf(error) }),
  }
}

function errorOf({ name, value, traceback, full, line, column }: Readonly<Record<string, unknown>>): CodeError {
  const texts = [name, value, traceback, full]
  if (!texts.every((text) => typeof text === 'string' && text.length <= mostTextCharacters * 2))
    throw new KernelFault('its error has a text that is none, or too long')
  return {
    name: name as string,
    value: value as string,
    traceback: traceback as string,
    fullTraceback: full as string,
    ...(isCount(line) && { line }),
    ...(isCount(column) && { column }),
  }
}

function objectIn(payload: Uint8Array, what: string): Readonly<Record<string, unknown>> {
  if (payload.includes(0)) throw new KernelFault(`its '${what}' holds a NUL`)
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload))
  } catch {
    throw new KernelFault(`its '${what}' is no JSON in UTF-8`)
  }
  if (!isObject(value)) throw new KernelFault(`its '${what}' is no object`)
  return value
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** Mark 0 comes before the code, so no frame can follow it. */
function markOf(mark: unknown): number {
  if (!isCount(mark) || mark === 0) throw new KernelFault('it sent a frame without a mark')
  return mark
}

/** Level by level: what is nested a million times must not end us while we look. Undefined when there are too many, or one is too deep. */
function countObjects(value: unknown): number | undefined {
  let [level, count] = [[value].filter(isNested), 0]
  for (let depth = 0; level.length > 0; depth += 1) {
    count += level.length
    if (depth > deepest || count > mostObjects) return undefined
    level = level.flatMap((each) => Object.values(each).filter(isNested))
  }
  return count
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
