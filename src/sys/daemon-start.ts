/** Starting the daemon: a process of its own session that keeps nothing of whoever started it. */
import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { resolve } from 'node:path'
import * as z from 'zod'
import { deferred } from '../contract/deferred.js'
import { type ErrorCode, errorTable, SandboxError } from '../contract/errors.js'

/** What a daemon says of its start, once, before it lets go of the pipe. */
export type DaemonNews =
  | { readonly type: 'ready' }
  /** Another was there first. */
  | { readonly type: 'there' }
  | { readonly type: 'failed'; readonly code: string; readonly message: string; readonly hint?: string | undefined }

const newsSchema = deferred(() =>
  z.union([
    z.strictObject({ type: z.enum(['ready', 'there']) }),
    z.strictObject({ type: z.literal('failed'), code: z.string(), message: z.string(), hint: z.string().optional() }),
  ]),
)

/** The descriptor by which a daemon tells of its start. */
export const newsDescriptor = 3

/**
 * What a daemon may know of the environment: where things are, whom it works for, and how the network is reached. Nothing else is taken along: a shell's variables hold
 * secrets, and a daemon outlives the shell.
 */
const passedOn = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'LANG',
  'LC_ALL',
  'TZ',
  'TMPDIR',
  'XDG_RUNTIME_DIR',
  'XDG_CACHE_HOME',
  'XDG_DATA_HOME',
  'XDG_STATE_HOME',
  'DOCKER_HOST',
  'DOCKER_CERT_PATH',
  'DOCKER_TLS_VERIFY',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'NODE_EXTRA_CA_CERTS',
  'NODE_DISABLE_COMPILE_CACHE',
  'GLOVEBOX_CACHE_DIR',
  'GLOVEBOX_STATE_DIR',
  'GLOVEBOX_KEY_DIR',
  'GLOVEBOX_SNAPSHOT_DIR',
  'GLOVEBOX_TEMPLATE_DIR',
  'GLOVEBOX_CHANGES_DIR',
  'GLOVEBOX_DAEMON_IDLE',
] as const

type Environment = Readonly<Record<string, string | undefined>>

function daemonEnvironment(env: Environment = process.env): Record<string, string> {
  const kept = passedOn.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]))
  const { GLOVEBOX_POLICY: policy } = env
  // It does not start where we are.
  const held = policy === undefined ? [] : [['GLOVEBOX_POLICY', /^[a-z]+$/.test(policy) ? policy : resolve(policy)] as const]
  return Object.fromEntries([...kept, ...held])
}

/** Resolves when there is a daemon that listens. Rejects with why it could not be. */
export async function startDaemon(program: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  const child = spawn(process.execPath, [program, 'daemon'], {
    cwd: '/',
    detached: true,
    env: daemonEnvironment(),
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  })
  const failure = new Promise<never>((_, reject) => {
    child.once('error', (error) => reject(new SandboxError('unavailable', `the daemon cannot be started: ${error.message}`, { cause: error })))
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  const pipe = child.stdio[newsDescriptor] as Readable
  try {
    checkNews(await Promise.race([text(pipe), failure]))
  } finally {
    failure.catch(() => undefined)
    pipe.destroy()
    child.unref()
  }
}

function checkNews(said: string): void {
  const news = parseNews(said)
  if (news === undefined) throw new SandboxError('internal', 'the daemon ended before it listened, without saying why', { hint: 'glovebox doctor' })
  if (news.type !== 'failed') return
  throw new SandboxError(isErrorCode(news.code) ? news.code : 'internal', news.message, news.hint === undefined ? {} : { hint: news.hint })
}

function parseNews(said: string): DaemonNews | undefined {
  try {
    return newsSchema.parse(JSON.parse(said))
  } catch {
    return undefined
  }
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorTable, code)
}
