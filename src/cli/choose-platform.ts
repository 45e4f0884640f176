/**
 * Where a command finds its sandboxes: at the server that GLOVEBOX_URL names, else at the daemon of this user, else in this very process. A command that makes a sandbox which
 * lasts starts the daemon where there is none; one that only looks does not, and finds nothing.
 */
import {
  askToLeave,
  connectPlatform,
  createPlatform,
  daemonIdentity,
  daemonPlace,
  type DaemonPlace,
  isDaemonListening,
  isDaemonThere,
  readDaemonRecord,
  remotePlatform,
  removeDaemonFiles,
  startDaemon,
  sweepLeftovers,
  withDaemonLock,
} from '../compose.js'
import { SandboxError } from '../contract/errors.js'
import type { Platform } from '../contract/platform.js'
import { type Interrupts, watchInterrupts } from './interrupts.js'
import { say } from './print.js'

export type Where = 'remote' | 'daemon' | 'here'

interface Chosen {
  readonly platform: Platform
  readonly where: Where
}

interface PlatformWish {
  /** `fresh`: for one command; `here`: for one that needs this machine, and this very process. `kept`: for what lasts and is there already. `lasting`: for what is to last. */
  readonly wants: 'fresh' | 'here' | 'kept' | 'lasting'
  readonly signal: AbortSignal
}

/** Whether what is made and signed is made elsewhere. */
export function isRemote(): boolean {
  return Boolean(process.env.GLOVEBOX_URL)
}

/** Whoever asks disposes of the platform, which ends nothing that lasts. */
export async function choosePlatform({ wants, signal }: PlatformWish): Promise<Chosen> {
  if (wants === 'here') {
    if (isRemote()) throw new SandboxError('invalid', '--here: the folder is on this machine, and GLOVEBOX_URL names another', { hint: 'unset GLOVEBOX_URL' })
    return { platform: createPlatform(), where: 'here' }
  }
  // What a command makes for itself goes with it.
  const own = { closesOwn: wants === 'fresh' }
  const remote = remotePlatform(own)
  if (remote) return { platform: remote, where: 'remote' }
  const place = daemonPlace()
  const isThere = await isUsable(place, { wants, signal })
  if (!isThere && wants !== 'lasting') return { platform: createPlatform(), where: 'here' }
  if (!isThere) await startDaemon(process.argv[1] ?? '', signal)
  return { platform: connectPlatform({ socket: place.socket }, own), where: 'daemon' }
}

/** Whether a daemon is there that is the right one for this. What a killed one left is taken away. */
async function isUsable(place: DaemonPlace, { wants }: PlatformWish): Promise<boolean> {
  if (!isDaemonThere(place)) return false
  if (!(await isDaemonListening(place))) {
    await clearAway(place)
    return false
  }
  const record = readDaemonRecord(place)
  if (record === undefined || record.identity === daemonIdentity(process.argv[1] ?? '')) return true
  if (wants === 'fresh') return false
  if (wants === 'lasting' && !(await holdsSomething(place)) && (await askToLeave(place))) return false
  const what = `the daemon that holds your sandboxes was started ${record.startedAt} from another build (${record.version}), or with another policy`
  if (wants === 'lasting') throw new SandboxError('conflict', `${what}, and makes way when it holds nothing`, { hint: 'glovebox rm --all' })
  say(`${what}; it makes way when it holds nothing`)
  return true
}

/** Whether that is known for certain: one of another build may not understand us, and is the judge itself then. */
async function holdsSomething({ socket }: DaemonPlace): Promise<boolean> {
  try {
    await using platform = connectPlatform({ socket })
    for await (const _ of platform.list()) return true
    return false
  } catch {
    return false
  }
}

/** Of a daemon that did not leave by itself. Its sandboxes ended with it. */
async function clearAway(place: DaemonPlace): Promise<void> {
  const record = readDaemonRecord(place)
  const isCleared = await withDaemonLock(place, async () => {
    if (await isDaemonListening(place)) return false
    removeDaemonFiles(place)
    await sweepLeftovers()
    return true
  })
  if (isCleared && record) say(`the daemon that was started ${record.startedAt} was ended from outside, and the sandboxes that it held with it`)
}

export interface Surroundings extends Chosen {
  readonly interrupts: Interrupts
  readonly signal: AbortSignal
}

/** One command on a platform. What it was in the middle of says in many ways that it was stopped; here it is said in one. */
export async function withPlatform(wants: PlatformWish['wants'], act: (surroundings: Surroundings) => Promise<number>): Promise<number> {
  using interrupts = watchInterrupts()
  const { signal } = interrupts
  try {
    const { platform, where } = await choosePlatform({ wants, signal })
    await using _disposed = platform
    return await act({ platform, where, interrupts, signal })
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  }
}
