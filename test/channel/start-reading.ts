/** The payload of START as the warden reads it, for those that stand in for one. */
import { SandboxError } from '../../src/contract/errors.js'
import {
  allFlags,
  asideFlag,
  gateFlag,
  isGroup,
  isSide,
  laterFlag,
  layersFlag,
  maxRlimits,
  maxStringBytes,
  maxStrings,
  type StartPayload,
  stdinFlag,
  terminalFlag,
  type ToldRequest,
  workerFlag,
} from '../../src/channel/start-payload.js'

/** Reads fields in order and refuses to go past the end. */
class Cursor {
  readonly #bytes: Buffer
  #at = 0

  constructor(payload: Uint8Array) {
    this.#bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  u16(): number {
    return this.#bytes.readUInt16LE(this.#advance(2))
  }

  u32(): number {
    return this.#bytes.readUInt32LE(this.#advance(4))
  }

  u64(): bigint {
    return this.#bytes.readBigUInt64LE(this.#advance(8))
  }

  count(most: number): number {
    const count = this.u32()
    if (count > most) throw malformed()
    return count
  }

  text(): string {
    const length = this.count(maxStringBytes)
    const start = this.#advance(length)
    const bytes = this.#bytes.subarray(start, start + length)
    if (bytes.includes(0)) throw malformed()
    return bytes.toString('utf8')
  }

  #advance(length: number): number {
    const start = this.#at
    if (length > this.#bytes.length - start) throw malformed()
    this.#at = start + length
    return start
  }
}

function malformed(): SandboxError {
  return new SandboxError('broken', 'the engine sent a malformed START')
}

/** The warden's reading of START; throws only SandboxError('broken'). */
export function decodeStart(payload: Uint8Array): StartPayload {
  const cursor = new Cursor(payload)
  const flags = cursor.u32()
  if (flags > allFlags) throw malformed()
  const uid = cursor.u32()
  const gid = cursor.u32()
  const capabilities = cursor.u64()
  const rlimits = Array.from({ length: cursor.count(maxRlimits) }, () => ({ resource: cursor.u32(), soft: cursor.u64(), hard: cursor.u64() }))
  const told = readTold(cursor)
  const group = cursor.text()
  const kind = decodeKind(flags, cursor)
  if ((kind.worker && told.argv.length > 1) || !isGroup(group) || !cursor.isAtEnd) throw malformed()
  if (kind.later ? told.cwd !== '' || told.argv.length > 0 || Object.keys(told.env).length > 0 : told.argv.length === 0) throw malformed()
  return {
    ...told,
    uid,
    gid,
    capabilities,
    rlimits,
    stdin: (flags & stdinFlag) !== 0,
    group,
    gate: (flags & gateFlag) !== 0,
    ...kind,
  }
}

function readTold(cursor: Cursor): ToldRequest {
  const cwd = cursor.text()
  const argv = Array.from({ length: cursor.count(maxStrings) }, () => cursor.text())
  const variables = Array.from({ length: cursor.count(maxStrings) }, () => splitVariable(cursor.text()))
  return { cwd, argv, env: Object.fromEntries(variables) }
}

function decodeKind(flags: number, cursor: Cursor): Pick<StartPayload, 'terminal' | 'worker' | 'layers' | 'later' | 'aside'> {
  const has = (flag: number): boolean => (flags & flag) !== 0
  const [hasTerminal, isWorker, hasLayers, isLater] = [has(terminalFlag), has(workerFlag), has(layersFlag), has(laterFlag)]
  if (((hasTerminal || isWorker) && !has(stdinFlag)) || (hasTerminal && isWorker) || (hasLayers && !isWorker)) throw malformed()
  if (isLater && (!has(gateFlag) || hasTerminal || isWorker)) throw malformed()
  const hasAside = has(asideFlag)
  if (hasAside && (!has(stdinFlag) || hasTerminal || isWorker || isLater)) throw malformed()
  const rows = hasTerminal ? cursor.u16() : 1
  const cols = hasTerminal ? cursor.u16() : 1
  if (!isSide(rows) || !isSide(cols)) throw malformed()
  return {
    ...(hasTerminal && { terminal: { cols, rows } }),
    ...(isWorker && { worker: 'files' }),
    ...(hasLayers && { layers: true }),
    ...(isLater && { later: true }),
    ...(hasAside && { aside: true }),
  }
}

function splitVariable(text: string): [name: string, value: string] {
  const split = text.indexOf('=')
  if (split < 1) throw malformed()
  return [text.slice(0, split), text.slice(split + 1)]
}
