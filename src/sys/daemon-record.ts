/** Who listens at the place of a daemon, and how that changes hands. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import * as z from 'zod'
import { deferred } from '../contract/deferred.js'
import { SandboxError } from '../contract/errors.js'
import { lockFolder } from './changes-lock.js'
import { checkDaemonPlace, type DaemonPlace } from './daemon-place.js'
import { draftIn } from './draft.js'
import { currentOwner, isAlive, ownerName, parseOwner } from './owner.js'

interface DaemonRecord {
  /** As the owner of records is named everywhere: its pid, and what tells it from any other that had this pid. */
  readonly owner: string
  readonly version: string
  /** What it cannot change any more. */
  readonly identity: string
  readonly startedAt: string
}

const recordSchema = deferred(() => z.strictObject({ owner: z.string(), version: z.string(), identity: z.string(), startedAt: z.string() }))

const lockMs = 15_000
const betweenMs = 20
const answerMs = 5000

/** Undefined when there is none that can be understood: then nothing is known of who listens. */
export function readDaemonRecord({ record }: DaemonPlace): DaemonRecord | undefined {
  try {
    return recordSchema.parse(JSON.parse(readFileSync(record, 'utf8')))
  } catch {
    return undefined
  }
}

/** Of this process. */
export function writeDaemonRecord({ record }: DaemonPlace, about: Pick<DaemonRecord, 'version' | 'identity'>): void {
  const whole: DaemonRecord = { owner: ownerName(currentOwner()), ...about, startedAt: new Date().toISOString() }
  const draft = draftIn(dirname(record))
  writeFileSync(draft, JSON.stringify(whole), { mode: 0o600 })
  renameSync(draft, record)
}

/** Whether a daemon takes connections there. Throws for what is not ours. */
export async function isDaemonListening(place: DaemonPlace): Promise<boolean> {
  return checkDaemonPlace(place) && (await takesConnections(place.socket))
}

/** Whether somebody listens at a socket. */
export function takesConnections(socket: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const connection = connect({ path: socket, timeout: answerMs })
    connection.once('connect', () => {
      connection.destroy()
      resolve(true)
    })
    connection.once('timeout', () => {
      connection.destroy()
      resolve(true)
    })
    connection.once('error', (error: NodeJS.ErrnoException) => {
      connection.destroy()
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') resolve(false)
      // Too many at once are no sign of death.
      else if (error.code === 'EAGAIN') resolve(true)
      else reject(new SandboxError('unavailable', `${socket} cannot be used (${error.code ?? error.message})`, { hint: `ls -l ${socket}`, cause: error }))
    })
  })
}

/** Changes nothing while somebody else does. */
export async function withDaemonLock<Result>({ folder, socket }: DaemonPlace, act: () => Promise<Result>): Promise<Result> {
  using _lock = await lockWithin(folder, socket)
  return await act()
}

async function lockWithin(folder: string, socket: string): Promise<Disposable> {
  const until = performance.now() + lockMs
  const busy = (): SandboxError => new SandboxError('busy', `${socket} is being changed by another command`, { hint: 'glovebox ls' })
  for (;;) {
    try {
      return lockFolder(folder, socket, busy)
    } catch (error) {
      if (!(error instanceof SandboxError) || performance.now() > until) throw error
      await sleep(betweenMs)
    }
  }
}

/** What a daemon that was killed left at its place; to be called with the lock held. */
export function removeDaemonFiles({ socket, record }: DaemonPlace): void {
  for (const path of [socket, record]) rmSync(path, { force: true })
}

/** Asks the daemon that listens there to leave if it holds nothing, and waits for it. False when it stays. */
export async function askToLeave(place: DaemonPlace): Promise<boolean> {
  const owner = parseOwner(readDaemonRecord(place)?.owner ?? '')
  if (owner === undefined || !isAlive(owner)) return !(await isDaemonListening(place))
  process.kill(owner.pid, leaveSignal)
  const until = performance.now() + answerMs
  while (isAlive(owner) && performance.now() < until) await sleep(betweenMs)
  return !isAlive(owner)
}

/** What asks a daemon to leave if it holds nothing; without a daemon's answer to it, nothing is changed. */
export const leaveSignal = 'SIGUSR2'
