/** The payload of START: everything a program is started with. */
import { SandboxError } from '../contract/errors.js'
import { maxStartBytes, maxToldBytes } from './frames.js'

export interface ResourceLimit {
  readonly resource: number
  readonly soft: bigint
  readonly hard: bigint
}

/** In characters, each between 1 and 4,096. */
export interface TerminalSize {
  readonly cols: number
  readonly rows: number
}

export interface LinerRequest {
  /** Of all that it can write to. */
  readonly diskBytes: number
  readonly inodes: number
  /** By the zygote, as which it goes on, instead of an execve. */
  readonly forked?: boolean
}

export interface StartRequest {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly uid: number
  readonly gid: number
  /** The kernel's bit mask. */
  readonly capabilities: bigint
  readonly rlimits: readonly ResourceLimit[]
  /** Whether stdin will be fed; otherwise it is /dev/null. */
  readonly stdin: boolean
  /** Its stdio is a terminal of this size, which it controls. Needs `stdin`. */
  readonly terminal?: TerminalSize
  /** Instead of a program the warden's own file worker, with all that holds for programs. Needs `stdin`; `argv` is its name alone. */
  readonly worker?: 'files'
  /** The worker holds the folder of layers. Only with `worker`. */
  readonly layers?: boolean
  /** What it is fed is its descriptor 3, beside a stdin of /dev/null, and its descriptor 4 is a third stream. Needs `stdin`; for programs without a terminal. */
  readonly aside?: boolean
  /** In namespaces of its own, with files of its own, of which nothing is left when it ends. Not for a terminal, a worker or what has an aside. */
  readonly liner?: LinerRequest
  /** It is the zygote that programs in liners are forked from, and loads this. Only alone. */
  readonly zygote?: Uint8Array
  /** The group that it joins, by name, below those that the driver opened for the warden. */
  readonly group?: string
}

/** What a program is to become. */
export type ToldRequest = Pick<StartRequest, 'argv' | 'env' | 'cwd'>

/** All that a program is but for what it is to become. */
export type ReadyRequest = Omit<StartRequest, keyof ToldRequest | 'terminal' | 'worker' | 'layers' | 'aside' | 'zygote'>

export interface StartPayload extends StartRequest {
  /** Whether it waits before it runs until RELEASE. */
  readonly gate?: boolean
  /** Whether RELEASE tells what it is to become: then nothing here does. Needs `gate`. */
  readonly later?: boolean
}

export const maxStrings = 4096
export const maxStringBytes = 131_071
export const maxRlimits = 16
const maxGroupBytes = 255

export const stdinFlag = 1
export const gateFlag = 2
export const terminalFlag = 4
export const workerFlag = 8
export const layersFlag = 16
export const laterFlag = 32
export const asideFlag = 64
const linerFlag = 128
const forkedFlag = 256
const zygoteFlag = 512
export const allFlags = 1023
const maxSide = 4096
const fixedBytes = 4 + 4 + 4 + 8 + 4
const rlimitBytes = 20
const sizeBytes = 4
const linerBytes = 16
const maxU32 = 2 ** 32 - 1
const maxU64 = 2n ** 64n - 1n

interface Text {
  readonly text: string
  readonly byteLength: number
}

function measure(field: string, text: string): Text {
  const byteLength = Buffer.byteLength(text)
  if (byteLength > maxStringBytes) throw new SandboxError('invalid', `${field} has ${byteLength} bytes; at most ${maxStringBytes} are possible`)
  if (text.includes('\0')) throw new SandboxError('invalid', `${field} contains a NUL character`)
  return { text, byteLength }
}

interface ToldTexts {
  readonly cwd: Text
  readonly argv: readonly Text[]
  readonly env: readonly Text[]
}

function measureTold(request: ToldRequest): ToldTexts {
  const variables = Object.entries(request.env)
  for (const [field, count] of [
    ['argv', request.argv.length],
    ['env', variables.length],
  ] as const) {
    if (count > maxStrings) throw new SandboxError('invalid', `${field} has ${count} entries; at most ${maxStrings} are possible`)
  }
  return {
    cwd: measure('cwd', request.cwd),
    argv: request.argv.map((argument, index) => measure(`argv[${index}]`, argument)),
    env: variables.map(([name, value]) => measureVariable(name, value)),
  }
}

function sizeOf({ cwd, argv, env }: ToldTexts): number {
  return [cwd, ...argv, ...env].reduce((sum, each) => sum + 4 + each.byteLength, 8)
}

function measureVariable(name: string, value: string): Text {
  if (name === '' || name.includes('=')) throw new SandboxError('invalid', `env: '${name.slice(0, 80)}' is no name of a variable`)
  return measure(`env.${name.slice(0, 80)}`, `${name}=${value}`)
}

export function isGroup(name: string): boolean {
  return Buffer.byteLength(name) <= maxGroupBytes && !name.includes('/') && name !== '.' && name !== '..'
}

function measureGroup(name: string): Text {
  if (!isGroup(name)) throw new SandboxError('invalid', `group: '${name.slice(0, 80)}' is no name of a folder`)
  return measure('group', name)
}

export function isSide(length: number): boolean {
  return Number.isInteger(length) && length >= 1 && length <= maxSide
}

/** Throws SandboxError('invalid') naming the side that is none. */
export function checkSize(size: TerminalSize): void {
  for (const side of ['cols', 'rows'] as const) {
    if (!isSide(size[side])) throw new SandboxError('invalid', `terminal.${side}: ${size[side]} is not between 1 and ${maxSide}`)
  }
}

function checkLined({ terminal, worker, aside, stdin, capabilities, liner, zygote }: StartRequest): void {
  if (!liner && !zygote) return
  const field = liner ? 'liner' : 'zygote'
  if (terminal || worker || aside) throw new SandboxError('invalid', `${field}: not for a terminal, a worker or what has an aside`)
  if (capabilities !== 0n) throw new SandboxError('invalid', `${field}: it has no capabilities`)
  if (liner && (zygote || !isCount(liner.diskBytes) || !isCount(liner.inodes))) throw new SandboxError('invalid', 'liner: its disk has a size and inodes')
  if (zygote && stdin) throw new SandboxError('invalid', 'stdin: a zygote has none')
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0
}

function checkKind({ terminal, worker, layers, aside, stdin, argv }: StartRequest): void {
  if (terminal) checkSize(terminal)
  if ((terminal || worker) && !stdin) throw new SandboxError('invalid', 'stdin: a terminal and a worker have one')
  if (terminal && worker) throw new SandboxError('invalid', 'worker: none is at a terminal')
  if (worker && argv.length !== 1) throw new SandboxError('invalid', `argv has ${argv.length} entries; a worker has its name alone`)
  if (layers && !worker) throw new SandboxError('invalid', 'layers: only a worker holds them')
  if (aside && !stdin) throw new SandboxError('invalid', 'stdin: what has an aside is fed')
  if (aside && (terminal || worker)) throw new SandboxError('invalid', 'aside: neither a terminal nor a worker has one')
}

function flagsOf({ stdin, gate, terminal, worker, layers, later, aside, liner, zygote }: StartPayload): number {
  const parts = [
    stdin && stdinFlag,
    gate && gateFlag,
    terminal && terminalFlag,
    worker && workerFlag,
    layers && layersFlag,
    later && laterFlag,
    aside && asideFlag,
    liner && linerFlag,
    liner?.forked && forkedFlag,
    zygote && zygoteFlag,
  ]
  return parts.reduce<number>((flags, part) => flags | (part === undefined || part === false ? 0 : part), 0)
}

function checkNumbers(request: StartRequest): void {
  for (const field of ['uid', 'gid'] as const) {
    if (!Number.isInteger(request[field]) || request[field] < 0 || request[field] > maxU32)
      throw new SandboxError('invalid', `${field} ${request[field]} is no id`)
  }
  if (request.capabilities < 0n || request.capabilities > maxU64) throw new SandboxError('invalid', 'capabilities are no 64-bit mask')
  if (request.rlimits.length > maxRlimits)
    throw new SandboxError('invalid', `rlimits has ${request.rlimits.length} entries; at most ${maxRlimits} are possible`)
  for (const { resource, soft, hard } of request.rlimits) {
    const isGood = Number.isInteger(resource) && resource >= 0 && resource <= maxU32 && soft >= 0n && soft <= maxU64 && hard >= 0n && hard <= maxU64
    if (!isGood) throw new SandboxError('invalid', `rlimits: resource ${resource} with ${soft} and ${hard} is out of range`)
  }
}

/** Throws SandboxError('invalid') naming the field when the request does not fit the protocol. */
export function encodeStart(request: StartPayload): Buffer {
  checkNumbers(request)
  if (request.argv.length === 0 && !request.later) throw new SandboxError('invalid', 'argv is empty')
  const told = measureTold(request)
  const group = measureGroup(request.group ?? '')
  checkKind(request)
  checkLined(request)
  const rest = encodeRest(request)
  const size = fixedBytes + request.rlimits.length * rlimitBytes + sizeOf(told) + 4 + group.byteLength + rest.length
  if (size > maxStartBytes) throw new SandboxError('invalid', `argv and env have ${size} bytes together; at most ${maxStartBytes} are possible`)

  const payload = Buffer.allocUnsafe(size)
  let at = payload.writeUInt32LE(flagsOf(request), 0)
  at = payload.writeUInt32LE(request.uid, at)
  at = payload.writeUInt32LE(request.gid, at)
  at = payload.writeBigUInt64LE(request.capabilities, at)
  at = payload.writeUInt32LE(request.rlimits.length, at)
  for (const { resource, soft, hard } of request.rlimits) {
    at = payload.writeUInt32LE(resource, at)
    at = payload.writeBigUInt64LE(soft, at)
    at = payload.writeBigUInt64LE(hard, at)
  }
  at = writeTold(payload, told, at)
  at = writeText(payload, group, at)
  rest.copy(payload, at)
  return payload
}

/** What only some have. */
function encodeRest({ terminal, liner, zygote }: StartPayload): Buffer {
  if (terminal) return encodeSize(terminal)
  if (liner) {
    const bytes = Buffer.allocUnsafe(linerBytes)
    bytes.writeBigUInt64LE(BigInt(liner.inodes), bytes.writeBigUInt64LE(BigInt(liner.diskBytes), 0))
    return bytes
  }
  if (!zygote) return Buffer.alloc(0)
  const length = Buffer.allocUnsafe(4)
  length.writeUInt32LE(zygote.length)
  return Buffer.concat([length, zygote])
}

/** The START of a program that is told later what to become. */
export function encodeReady(request: ReadyRequest): Buffer {
  return encodeStart({ ...request, argv: [], env: {}, cwd: '', gate: true, later: true })
}

/** What RELEASE tells such a program; undefined when it is more than RELEASE can. Throws SandboxError('invalid') as `encodeStart` does. */
export function encodeTold(request: ToldRequest): Buffer | undefined {
  if (request.argv.length === 0) throw new SandboxError('invalid', 'argv is empty')
  const told = measureTold(request)
  const size = sizeOf(told)
  if (size > maxToldBytes) return undefined
  const payload = Buffer.allocUnsafe(size)
  writeTold(payload, told, 0)
  return payload
}

function writeTold(payload: Buffer, { cwd, argv, env }: ToldTexts, start: number): number {
  let at = writeText(payload, cwd, start)
  at = payload.writeUInt32LE(argv.length, at)
  for (const each of argv) at = writeText(payload, each, at)
  at = payload.writeUInt32LE(env.length, at)
  for (const each of env) at = writeText(payload, each, at)
  return at
}

/** As RESIZE has it too. */
export function encodeSize({ cols, rows }: TerminalSize): Buffer {
  const bytes = Buffer.allocUnsafe(sizeBytes)
  bytes.writeUInt16LE(cols, bytes.writeUInt16LE(rows, 0))
  return bytes
}

function writeText(payload: Buffer, { text, byteLength }: Text, at: number): number {
  const start = payload.writeUInt32LE(byteLength, at)
  payload.write(text, start, 'utf8')
  return start + byteLength
}
