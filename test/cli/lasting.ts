/** Sandboxes that last, each test file with a daemon of its own: places of its own make it one. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { daemonPlace } from '../../src/sys/daemon-place.js'
import { processFacts } from '../../src/sys/places.js'
import { type CliOptions, type CliResult, cli, fake } from './cli.js'

export interface LastingHome extends AsyncDisposable {
  readonly top: string
  readonly env: Readonly<Record<string, string>>
  readonly place: ReturnType<typeof daemonPlace>
  cli(args: readonly string[], options?: CliOptions): Promise<CliResult>
  /** A cell without walls, and its id. */
  create(flags?: readonly string[]): Promise<string>
  /** Of the daemon, if there is one that is alive. */
  daemonPid(): number | undefined
}

export function lastingHome({ idle = '30s' } = {}): LastingHome {
  const top = mkdtempSync(join(tmpdir(), 'glovebox-lasting-'))
  const env = {
    GLOVEBOX_SNAPSHOT_DIR: join(top, 'snapshots'),
    GLOVEBOX_DAEMON_IDLE: idle,
    GLOVEBOX_URL: '',
    NO_COLOR: '1',
    ...(process.getuid?.() === 0 ? {} : { GLOVEBOX_STATE_DIR: join(top, 'state') }),
  }
  for (const name of ['snapshots', 'state']) mkdirSync(join(top, name), { mode: 0o700 })
  const facts = processFacts()
  const place = daemonPlace({ ...facts, env: { ...facts.env, ...env } })
  const run = (args: readonly string[], options: CliOptions = {}): Promise<CliResult> => cli(args, { ...options, env: { ...env, ...options.env } })
  return {
    top,
    env,
    place,
    cli: run,
    async create(flags = []) {
      const result = await run(['create', '-q', ...fake, ...flags])
      if (result.code !== 0) throw new Error(result.stderr)
      return result.stdout.trim()
    },
    daemonPid: () => pidIn(place.record),
    async [Symbol.asyncDispose]() {
      const pid = pidIn(place.record)
      if (pid !== undefined) {
        process.kill(pid, 'SIGTERM')
        await gone(pid)
      }
      rmSync(top, { recursive: true, force: true })
    },
  }
}

function pidIn(record: string): number | undefined {
  try {
    const { owner } = JSON.parse(readFileSync(record, 'utf8')) as { readonly owner: string }
    const pid = Number(owner.split('.')[0])
    return isRunning(pid) ? pid : undefined
  } catch {
    return undefined
  }
}

export function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

/** Resolves when it is; rejects when that takes too long. */
export async function until(isSo: () => boolean | Promise<boolean>, what: string, ms = 20_000): Promise<void> {
  const end = performance.now() + ms
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`never came about: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

export function gone(pid: number): Promise<void> {
  return until(() => !isRunning(pid), `the end of ${pid}`)
}

/** Daemons of whoever tests that listen from this home. */
export function filesAt({ place }: Pick<LastingHome, 'place'>): string[] {
  const name = place.socket.slice(place.folder.length + 1, -'.sock'.length)
  try {
    return readdirSync(place.folder).filter((file) => file.startsWith(name))
  } catch {
    return []
  }
}
