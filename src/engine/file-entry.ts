import type { WorkerEntry } from '../channel/index.js'
import type { GuestUser } from '../contract/driver.js'
import type { Entry } from '../contract/files.js'

const slash = 0x2f

/** `path` is what was asked for; what is listed has a name below it. */
export function entryOf(told: WorkerEntry, path: Uint8Array, users: readonly GuestUser[]): Entry {
  const bytes = withoutSlashes(told.name.length === 0 ? path : below(path, told.name))
  return {
    name: decode(lastPart(bytes)),
    ...placeOf(bytes),
    type: told.type,
    size: told.size,
    mode: told.mode,
    owner: users.find(({ uid }) => uid === told.uid)?.name ?? String(told.uid),
    group: users.find(({ gid }) => gid === told.gid)?.name ?? String(told.gid),
    modifiedAt: dateOf(told.modifiedNs),
    accessedAt: dateOf(told.accessedNs),
    changedAt: dateOf(told.changedNs),
    ...(told.target && { target: decode(told.target) }),
  }
}

export function placeOf(bytes: Uint8Array): Pick<Entry, 'path' | 'pathBytes'> {
  const path = decode(bytes)
  return { path, ...(!isText(bytes, path) && { pathBytes: bytes }) }
}

export function below(folder: Uint8Array, name: Uint8Array): Uint8Array {
  const outer = withoutSlashes(folder)
  const isRoot = outer.length === 1
  const path = new Uint8Array(outer.length + (isRoot ? 0 : 1) + name.length)
  path.set(outer)
  path[outer.length - (isRoot ? 1 : 0)] = slash
  path.set(name, path.length - name.length)
  return path
}

export function decode(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
}

function isText(bytes: Uint8Array, text: string): boolean {
  if (!text.includes('\uFFFD')) return true
  const again = new TextEncoder().encode(text)
  return again.length === bytes.length && again.every((byte, index) => byte === bytes[index])
}

/** At the end; the root keeps its own. */
function withoutSlashes(path: Uint8Array): Uint8Array {
  let end = path.length
  while (end > 1 && path[end - 1] === slash) end -= 1
  return path.subarray(0, end)
}

function lastPart(path: Uint8Array): Uint8Array {
  return path.length === 1 ? path : path.subarray(path.lastIndexOf(slash) + 1)
}

function dateOf(nanoseconds: bigint): Date {
  return new Date(Number(nanoseconds / 1_000_000n))
}
