/** What the warden's control frames say, checked field by field. */
import type { GuestConnection } from '../contract/egress.js'
import { SandboxError } from '../contract/errors.js'
import { guestWindows, protocolVersion, readU32, windowBytes } from './frames.js'

export interface WardenExit {
  /** `lost`: the run's keeper was killed, so nobody saw how the program ended. */
  readonly kind: 'exited' | 'signaled' | 'lost'
  /** The exit code, or the signal's number. */
  readonly code: number
  readonly cpuUserMs: number
  readonly cpuSystemMs: number
  readonly memoryPeakBytes: number
  /** From storage, and to it. */
  readonly readBytes: number
  readonly writtenBytes: number
}

export interface StartFailure {
  readonly stage: 'cwd' | 'exec' | 'set-up'
  readonly errno: number
  readonly text: string
  /** Of a program that was ended before it ran, at its gate or on the way there. */
  readonly exit?: WardenExit
}

const stages = [undefined, 'cwd', 'exec', 'set-up'] as const
const endings = [
  { kind: 'exited', least: 0, most: 255 },
  { kind: 'signaled', least: 1, most: 64 },
  { kind: 'lost', least: 0, most: 2 ** 32 - 1 },
] as const
const maxPid = 2 ** 31 - 1
const maxErrno = 4095
const connectStage = 4
/** EINTR, ECONNREFUSED, ETIMEDOUT. */
const interrupted = 4
const refused = 111
const timedOut = 110

/** What it says of its kernel; empty where it was not asked. */
export function checkHello(payload: Uint8Array): Uint8Array {
  const version = readU32(payload, 0)
  if (version !== protocolVersion) throw broken(`HELLO with version ${version}; this engine speaks ${protocolVersion}`)
  const window = readU32(payload, 4)
  if (window !== windowBytes) throw broken(`HELLO with a window of ${window} bytes instead of ${windowBytes}`)
  return payload.subarray(8)
}

export function parsePid(payload: Uint8Array, name: 'GATED' | 'STARTED'): number {
  const pid = readU32(payload, 0)
  if (pid < 1 || pid > maxPid) throw broken(`${name} with pid ${pid}`)
  return pid
}

export function parseFailed(payload: Uint8Array): StartFailure {
  const number = readU32(payload, 0)
  const stage = stages[number]
  if (!stage) throw broken(`FAILED at unknown stage ${number}`)
  return { stage, errno: readErrno(payload, 4, 'FAILED'), text: readText(payload.subarray(8)) }
}

/** What FAILED says of a connection. */
export function parseRefusal(payload: Uint8Array, port: number): SandboxError {
  const stage = readU32(payload, 0)
  if (stage !== connectStage) throw broken(`FAILED at stage ${stage} for a connection`)
  const errno = readErrno(payload, 4, 'FAILED')
  if (errno === refused) return new SandboxError('not-found', `nothing listens on port ${port} in the cell`)
  if (errno === timedOut) return new SandboxError('busy', `what listens on port ${port} in the cell takes no connection`)
  return new SandboxError('busy', `port ${port} in the cell could not be connected to: ${readText(payload.subarray(8))} (errno ${errno})`)
}

/** Why a connection broke off; undefined when it ended in order. */
export function parseClosed(payload: Uint8Array, port: number): SandboxError | undefined {
  const errno = readErrno(payload, 0, 'CLOSED')
  return errno === 0 ? undefined : new SandboxError('conflict', `the connection to port ${port} in the cell broke off (errno ${errno})`)
}

export interface Accepted extends Pick<GuestConnection, 'door' | 'address' | 'port'> {
  readonly window: number
}

const doors = [undefined, 'proxy', 'direct'] as const

/** Where a program's connection was meant to go. */
export function parseAccepted(payload: Uint8Array): Accepted {
  const [number = 0, family] = payload
  const door = doors[number]
  if (!door) throw broken(`ACCEPTED at unknown door ${number}`)
  const port = (payload[2] as number) | ((payload[3] as number) << 8)
  if (port === 0) throw broken('ACCEPTED at port 0')
  const window = guestWindows.find((bytes) => bytes === readU32(payload, 20))
  if (window === undefined) throw broken(`ACCEPTED with a window of ${readU32(payload, 20)} bytes`)
  if (family === 4) return { door, port, window, address: payload.subarray(4, 8).join('.') }
  if (family === 6) return { door, port, window, address: groupsOf(payload.subarray(4, 20)).join(':') }
  throw broken(`ACCEPTED of unknown family ${family}`)
}

function groupsOf(address: Uint8Array): string[] {
  return Array.from({ length: 8 }, (_, index) => (((address[index * 2] as number) << 8) | (address[index * 2 + 1] as number)).toString(16))
}

function readErrno(payload: Uint8Array, at: number, name: 'FAILED' | 'CLOSED'): number {
  const errno = readU32(payload, at)
  if (errno > maxErrno) throw broken(`${name} with errno ${errno}`)
  return errno
}

export function parseExited(payload: Uint8Array): WardenExit {
  const number = readU32(payload, 0)
  const ending = endings[number]
  if (!ending) throw broken(`EXITED of unknown kind ${number}`)
  const code = readU32(payload, 4)
  if (code < ending.least || code > ending.most) throw broken(`EXITED, ${ending.kind} with ${code}`)
  return {
    kind: ending.kind,
    code,
    cpuUserMs: readU64(payload, 8) / 1000,
    cpuSystemMs: readU64(payload, 16) / 1000,
    memoryPeakBytes: readU64(payload, 24),
    readBytes: readU64(payload, 32),
    writtenBytes: readU64(payload, 40),
  }
}

/** A program that ended before it ran is one that was not started. */
export function failureOf(exit: WardenExit): StartFailure {
  const how = { exited: `exited with ${exit.code}`, signaled: `was killed by signal ${exit.code}`, lost: 'lost its keeper' }[exit.kind]
  return { stage: 'set-up', errno: interrupted, text: `the program ${how} before it ran`, exit }
}

/** The warden's words end up in messages on terminals and in logs, so nothing in them may act there. */
export function readText(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD')
}

function readU64(bytes: Uint8Array, at: number): number {
  return readU32(bytes, at) + readU32(bytes, at + 4) * 2 ** 32
}

function broken(what: string): SandboxError {
  return new SandboxError('broken', `the warden sent ${what}`)
}
