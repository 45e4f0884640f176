/**
 * Remembers from one process to the next that trial cells opened here, so that a command need not build two cells to run in one. Only a yes is
 * remembered, and it enforces nothing: a cell that does not open is an error, and of one that does everything that was demanded is read back before
 * its first program runs. What limits hold is found out by each process itself.
 */
import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { draftIn } from '../sys/draft.js'
import { type NativeName, nativeProgram } from '../sys/native.js'
import { cachePlace } from '../sys/places.js'

export interface TrialMemory {
  /** The version of the runtime with which every trial cell opened not long ago, by the same account in the same surroundings. */
  recall(): string | undefined
  keep(version: string): void
  /** A cell did not open: whoever comes next shall try again, and say what is in the way. */
  forget(): void
}

/** Raised when more is tried, so that an older memory does not answer for it. */
const edition = 3
const lastingMs = 3_600_000

interface Kept {
  readonly version: string
  readonly atMs: number
}

/** `runtime` is where the program is that builds cells; `folder` is asked for when it is first needed; a place that cannot be had or written means that everything is tried again. */
export function createTrialMemory(runtime: () => string | undefined, folder: () => string = cachePlace): TrialMemory {
  // By what it is true of, so that two installations do not forget for each other.
  const place = (): string =>
    join(
      folder(),
      'trials',
      createHash('sha256')
        .update(surroundings(runtime() ?? ''))
        .digest('hex')
        .slice(0, 32),
    )
  return {
    recall: () =>
      orNothing(() => {
        const kept = JSON.parse(readOwn(place())) as Kept
        const ageMs = Date.now() - kept.atMs
        return ageMs >= 0 && ageMs < lastingMs ? kept.version : undefined
      }),
    keep: (version) =>
      orNothing(() => {
        const kept: Kept = { version, atMs: Date.now() }
        replace(place(), JSON.stringify(kept))
      }),
    forget: () => orNothing(() => rmSync(place(), { force: true })),
  }
}

function orNothing<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch {
    return undefined
  }
}

/** Of a plain file only: whatever else has its name is neither waited for nor read. */
function readOwn(place: string): string {
  const file = openSync(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    return fstatSync(file).isFile() ? readFileSync(file, 'utf8') : ''
  } finally {
    closeSync(file)
  }
}

function replace(place: string, text: string): void {
  const folder = dirname(place)
  const draft = draftIn(folder)
  orNothing(() => mkdirSync(folder, { mode: 0o700 }))
  for (const name of readdirSync(folder)) orNothing(() => removeOutdated(join(folder, name)))
  try {
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx' })
    renameSync(draft, place)
  } finally {
    rmSync(draft, { force: true })
  }
}

function removeOutdated(path: string): void {
  if (Date.now() - statSync(path).mtimeMs > lastingMs) rmSync(path, { force: true })
}

const sysctls = ['kernel/unprivileged_userns_clone', 'user/max_user_namespaces', 'kernel/apparmor_restrict_unprivileged_userns']
const natives: readonly NativeName[] = ['launcher', 'warden']

/** What decides whether a cell opens: another boot, account, container or program is another place. */
function surroundings(runtime: string): string {
  const texts = ['sys/kernel/random/boot_id', 'self/uid_map', 'self/cgroup', 'self/attr/current', ...sysctls.map((name) => `sys/${name}`)]
  const namespaces = ['user', 'mnt', 'pid', 'net'].map((name) => readlinkSync(`/proc/self/ns/${name}`))
  const status = readFileSync('/proc/self/status', 'utf8').match(/^(?:Uid|Gid|Cap\w+|NoNewPrivs|Seccomp\w*):.*$/gm) ?? []
  const programs = [runtime, ...natives.map(nativeProgram)].map(identityOf)
  return JSON.stringify([edition, process.arch, status, namespaces, texts.map((name) => orNothing(() => readFileSync(`/proc/${name}`, 'utf8'))), programs])
}

function identityOf(path: string): string {
  const { dev, ino, size, ctimeNs } = statSync(path, { bigint: true })
  return [path, dev, ino, size, ctimeNs].join(' ')
}
