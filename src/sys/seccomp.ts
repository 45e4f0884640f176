import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { arch, release } from 'node:os'
import { dirname, join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { SandboxError } from '../contract/errors.js'
import { draftIn } from './draft.js'
import { nativeProgram } from './native.js'
import { ARCH, simulate } from './filter-simulator.js'
import { parseSeccompProfile } from './seccomp-profile.js'
import { type SeccompLines, seccompLines, type SeccompTarget } from './seccomp-rules.js'
import type { SeccompSource } from './seccomp-source.js'

/** Far more than any profile takes. */
const usualPatienceMs = 20_000

/** Raised when the same profile becomes other lines. */
const edition = 2

const INSTRUCTION_BYTES = 8
/** The kernel's own bound on a filter. */
const MAX_INSTRUCTIONS = 4096
const DIGEST_BYTES = 32

export interface SeccompOptions {
  /** Compiled filters are kept here; nobody else may write to it. */
  readonly cacheDir: string
  /** How long one profile may take to compile. */
  readonly patienceMs?: number
}

/** For whom a filter is. */
export interface SeccompGuest {
  /** Capabilities that the guest keeps, such as CAP_CHOWN: rules may depend on them. */
  readonly capabilities?: readonly string[]
  /** Whatever the profile says, the guest makes no file without a name, which it could fill and execute. */
  readonly withoutNamelessFiles?: boolean
}

/** Filters as arrays of `sock_filter`, each compiled once and kept by the hash of its profile, its target and the compiler. */
export interface SeccompCompiler {
  /** Throws SandboxError('invalid') naming the profile, and its rule and field where it is about one. */
  compile(source: SeccompSource, guest?: SeccompGuest): Promise<Uint8Array>
  compileDefault(guest?: SeccompGuest): Promise<Uint8Array>
}

export function createSeccompCompiler({ cacheDir, patienceMs = usualPatienceMs }: SeccompOptions): SeccompCompiler {
  const compile: SeccompCompiler['compile'] = (source, guest = {}) => compileCached({ source, guest, cacheDir, patienceMs })
  return { compile, compileDefault: async (guest) => compile(readDefaultProfile(), guest) }
}

function readDefaultProfile(): SeccompSource {
  return { text: defaultSeccompText(), name: 'default.json' }
}

/** Our default profile, as JSON. */
export function defaultSeccompText(): string {
  return readFileSync(new URL('./profiles/default.json', import.meta.url), 'utf8')
}

function hostArch(): SeccompTarget['arch'] {
  switch (arch()) {
    case 'x64':
      return 'x86_64'
    case 'arm64':
      return 'aarch64'
    default:
      throw new SandboxError('unsupported', `no system-call filter for the architecture ${arch()}`, { hint: './glovebox doctor' })
  }
}

interface Order {
  readonly source: SeccompSource
  readonly guest: SeccompGuest
  readonly cacheDir: string
  readonly patienceMs: number
}

async function compileCached({ source, guest, cacheDir, patienceMs }: Order): Promise<Uint8Array> {
  const program = nativeProgram('seccomp-compile')
  const target: SeccompTarget = { arch: hostArch(), kernel: release(), capabilities: guest.capabilities ?? [] }
  const withoutNamelessFiles = guest.withoutNamelessFiles ?? false
  // Small files, which are read sooner than another thread could be asked to.
  const { size, mtimeMs, ctimeMs } = statSync(program)
  // A profile that was compiled before was valid then, so reading it again is not needed on the way to a cell.
  const facts = JSON.stringify([edition, source.text, target, withoutNamelessFiles, size, mtimeMs, ctimeMs])
  const place = join(cacheDir, 'seccomp', `${createHash('sha256').update(facts).digest('hex')}.bpf`)
  const cached = readCached(place)
  if (cached) return cached
  const { name } = source
  const lines = seccompLines({ profile: parseSeccompProfile(source.text, name), target, name, withoutNamelessFiles })
  const filter = await compileLines(lines, { program, name, patienceMs })
  checkStartable(filter, target.arch, name)
  // A place that cannot be written costs the next start some milliseconds, nothing else.
  await keep(place, Buffer.concat([digestOf(filter), filter])).catch(() => undefined)
  return filter
}

/** The digest in front tells a file that a crash or a full disk cut short from a filter. */
function readCached(place: string): Uint8Array | undefined {
  const bytes = bytesOf(place)
  if (bytes === undefined || bytes.length <= DIGEST_BYTES) return undefined
  const filter = bytes.subarray(DIGEST_BYTES)
  return digestOf(filter).equals(bytes.subarray(0, DIGEST_BYTES)) ? filter : undefined
}

function bytesOf(place: string): Buffer | undefined {
  try {
    return readFileSync(place)
  } catch {
    return undefined
  }
}

function digestOf(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest()
}

async function keep(place: string, bytes: Uint8Array): Promise<void> {
  const draft = draftIn(dirname(place))
  // Only the last folder: a recursive mkdir below /proc never returns.
  await mkdir(dirname(place), { mode: 0o700 }).catch(unlessExists)
  try {
    await writeFile(draft, bytes, { mode: 0o600, flag: 'wx' })
    await rename(draft, place)
  } finally {
    await rm(draft, { force: true })
  }
}

function unlessExists(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}

interface Compilation {
  readonly program: string
  readonly name: string
  readonly patienceMs: number
}

/** Runs the native compiler; an error of its names the line, and with it the rule. */
async function compileLines(lines: SeccompLines, { program, name, patienceMs }: Compilation): Promise<Uint8Array> {
  const child = spawn(program, [], { cwd: '/', env: {}, stdio: 'pipe', timeout: patienceMs, killSignal: 'SIGKILL' })
  const exited = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  // A compiler that refuses a line stops reading; its own words say more than the broken pipe.
  child.stdin.on('error', () => undefined).end(lines.text)
  const [filter, complaint, code] = await Promise.all([buffer(child.stdout), text(child.stderr), exited])
  if (child.killed) {
    throw new SandboxError('invalid', `seccomp profile ${name}: its filter was not compiled within ${patienceMs} ms`, {
      hint: 'use fewer rules with args, or none of your own: leave out seccomp',
    })
  }
  if (code !== 0) throw refusal(complaint, lines, name)
  if (filter.length === 0 || filter.length % INSTRUCTION_BYTES !== 0) throw new SandboxError('internal', `a filter of ${filter.length} bytes is no program`)
  const instructions = filter.length / INSTRUCTION_BYTES
  if (instructions > MAX_INSTRUCTIONS) {
    throw new SandboxError('invalid', `seccomp profile ${name}: its filter has ${instructions} instructions; the kernel takes ${MAX_INSTRUCTIONS}`)
  }
  return filter
}

function refusal(complaint: string, { places }: SeccompLines, name: string): SandboxError {
  const match = /line (\d+): (.*): (.*)/.exec(complaint)
  const place = places[Number(match?.[1]) - 1]
  if (match === null || place === undefined) {
    return new SandboxError('internal', `seccomp-compile ended without a filter: ${complaint.trim() || 'no reason given'}`)
  }
  return new SandboxError('invalid', `seccomp profile ${name}: ${place}: ${match[3]} '${match[2]}'`)
}

/** Numbers on each architecture of what is called between loading the filter and a program's first instruction, and of what ends it. */
const startingCalls = {
  read: { x86_64: 0, aarch64: 63 },
  write: { x86_64: 1, aarch64: 64 },
  execve: { x86_64: 59, aarch64: 221 },
  exit_group: { x86_64: 231, aarch64: 94 },
} as const

/** Better said before a cell is built than by a program that ends at once. */
function checkStartable(filter: Uint8Array, arch: SeccompTarget['arch'], name: string): void {
  const refused = Object.entries(startingCalls).filter(([, numbers]) => {
    const verdict = simulate(filter, { arch: ARCH[arch], number: numbers[arch] })
    return verdict !== 'allow' && verdict !== 'log'
  })
  if (refused.length === 0) return
  throw new SandboxError('invalid', `seccomp profile ${name}: no program could start, because it refuses ${refused.map(([call]) => call).join(', ')}`)
}
