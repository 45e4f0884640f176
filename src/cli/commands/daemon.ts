/**
 * The daemon of a user: an engine behind a socket, so that sandboxes outlast the commands that use them. It is started by `create`, tells by a pipe whether it listens, and from
 * then on keeps nothing of whoever started it. It goes when it was of no use for a while; told to stop, it closes what it holds and goes.
 */
import { chmodSync, closeSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import {
  createPlatform,
  daemonIdentity,
  daemonPlace,
  type DaemonNews,
  type DaemonPlace,
  isDaemonListening,
  leaveSignal,
  makeDaemonFolder,
  newsDescriptor,
  removeDaemonFiles,
  serveSocket,
  type SocketServer,
  withDaemonLock,
  writeDaemonRecord,
} from '../../compose.js'
import { SandboxError } from '../../contract/errors.js'
import type { Platform } from '../../contract/platform.js'
import { durationSchema } from '../../contract/quantities.js'
import { untilUnneeded } from '../daemon-watch.js'
import { exitCodes } from '../exit-codes.js'
import { Stopped, watchInterrupts } from '../interrupts.js'
import { isAbandoned } from '../sandbox-owner.js'

const usualIdle = '60s'

/** Resolves when it is over, and nothing of it is left. */
export async function daemon(version: string): Promise<number> {
  const place = daemonPlace()
  // Not that of whoever started it: what it makes is the same for all of its sandboxes.
  process.umask(0o022)
  using _noted = noteFailures(place)
  using interrupts = watchInterrupts()
  const platform = createPlatform()
  try {
    const idleMs = idleTime()
    const server = await listen(place, platform, version)
    tell(server === undefined ? { type: 'there' } : { type: 'ready' })
    if (server) await serve({ place, platform, server, idleMs, signal: interrupts.signal })
    return exitCodes.ok
  } catch (error) {
    if (error instanceof Stopped) return exitCodes.ok
    tell(failureOf(error))
    throw error
  } finally {
    await platform[Symbol.asyncDispose]()
  }
}

/** Undefined when another listens there. */
async function listen(place: DaemonPlace, platform: Platform, version: string): Promise<SocketServer | undefined> {
  makeDaemonFolder(place)
  return withDaemonLock(place, async () => {
    if (await isDaemonListening(place)) return undefined
    removeDaemonFiles(place)
    const server = await serveSocket(platform, place.socket)
    try {
      chmodSync(place.socket, 0o600)
      writeDaemonRecord(place, { version, identity: daemonIdentity(process.argv[1] ?? '') })
      rmSync(place.failure, { force: true })
      return server
    } catch (error) {
      await server.close()
      removeDaemonFiles(place)
      throw error
    }
  })
}

interface Serving {
  readonly place: DaemonPlace
  readonly platform: Platform
  readonly server: SocketServer
  readonly idleMs: number
  readonly signal: AbortSignal
}

async function serve({ place, platform, server, idleMs, signal }: Serving): Promise<void> {
  const sandboxes = (): Promise<number> => countHeld(platform)
  const leaving = new AbortController()
  const told = AbortSignal.any([signal, leaving.signal])
  // Asked by whoever wants another in its place: what it holds is worth more.
  const onLeave = (): void => void sandboxes().then((count) => count === 0 && leaving.abort(new Stopped(leaveSignal)))
  process.on(leaveSignal, onLeave)
  try {
    await untilUnneeded({ connections: () => server.connections, sandboxes, socket: place.socket, idleMs, signal: told })
  } catch (error) {
    if (!told.aborted) throw error
  } finally {
    process.off(leaveSignal, onLeave)
    // Nobody finds it any more, and only then it is closed: whoever comes meanwhile starts another.
    await withDaemonLock(place, () => {
      removeDaemonFiles(place)
      return server.close()
    })
  }
}

/** What was made for commands that were killed is closed on the way. */
async function countHeld(platform: Platform): Promise<number> {
  let count = 0
  for await (const info of platform.list()) {
    if (isAbandoned(info)) await platform.close(info.id)
    else count += 1
  }
  return count
}

/** How long it stays when it is of no use. */
function idleTime(): number {
  const parsed = durationSchema({ min: 100, max: 7 * 86_400_000, example: usualIdle }).safeParse(process.env.GLOVEBOX_DAEMON_IDLE ?? usualIdle)
  if (parsed.success) return parsed.data
  throw new SandboxError('invalid', `GLOVEBOX_DAEMON_IDLE: ${parsed.error.issues[0]?.message ?? 'is no duration'}`, { hint: 'unset GLOVEBOX_DAEMON_IDLE' })
}

/** Once, to whoever started it; quiet when they are gone, or it was started by hand. */
function tell(news: DaemonNews): void {
  try {
    writeSync(newsDescriptor, JSON.stringify(news))
    closeSync(newsDescriptor)
  } catch (error) {
    if (!['EBADF', 'EPIPE', 'EINVAL'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

function failureOf(error: unknown): DaemonNews {
  if (error instanceof SandboxError) return { type: 'failed', code: error.code, message: error.message, hint: error.hint }
  return { type: 'failed', code: 'internal', message: `the daemon cannot be started: ${error instanceof Error ? error.message : String(error)}` }
}

/** What nobody caught ends it: its cells go with it, and the reason stays where it can be found. */
function noteFailures({ failure }: DaemonPlace): Disposable {
  const onFailure = (error: unknown): void => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    try {
      writeFileSync(failure, `${new Date().toISOString()} ${text}\n`, { mode: 0o600 })
    } finally {
      process.exit(exitCodes.failure)
    }
  }
  process.on('uncaughtException', onFailure)
  return { [Symbol.dispose]: () => process.off('uncaughtException', onFailure) }
}
