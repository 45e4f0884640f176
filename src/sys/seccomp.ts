import { spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { arch, release } from 'node:os'
import { dirname, join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { SandboxError } from '../contract/errors.js'
import { nativeProgram } from './native.js'
import { parseSeccompProfile } from './seccomp-profile.js'
import type { SeccompTarget } from './seccomp-rules.js'
import { seccompLines } from './seccomp-rules.js'

const INSTRUCTION_BYTES = 8
/** The kernel's own bound on a filter. */
const MAX_INSTRUCTIONS = 4096
const DIGEST_BYTES = 32

export interface SeccompOptions {
  /** Compiled filters are kept here; nobody else may write to it. */
  readonly cacheDir: string
}

/** A profile in Docker's JSON format, as it was read. */
export interface SeccompSource {
  readonly text: string
  /** How errors name it, such as its path. */
  readonly name: string
  /** Capabilities that the guest keeps, such as CAP_CHOWN: rules may depend on them. */
  readonly capabilities?: readonly string[]
}

/** Filters as arrays of `sock_filter`, each compiled once and kept by the hash of its profile, its target and the compiler. */
export interface SeccompCompiler {
  compile(source: SeccompSource): Promise<Uint8Array>
  compileDefault(): Promise<Uint8Array>
}

export function createSeccompCompiler(options: SeccompOptions): SeccompCompiler {
  let compilingDefault: Promise<Uint8Array> | undefined
  const compile = (source: SeccompSource): Promise<Uint8Array> => compileCached(source, options.cacheDir)
  return {
    compile,
    compileDefault: () => {
      compilingDefault ??= readDefaultProfile()
        .then(compile)
        .catch((error: unknown) => {
          compilingDefault = undefined
          throw error
        })
      return compilingDefault
    },
  }
}

async function readDefaultProfile(): Promise<SeccompSource> {
  return { text: await readFile(new URL('./profiles/default.json', import.meta.url), 'utf8'), name: 'default.json' }
}

function targetOf(source: SeccompSource): SeccompTarget {
  return { arch: hostArch(), kernel: release(), capabilities: source.capabilities ?? [] }
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

async function compileCached(source: SeccompSource, cacheDir: string): Promise<Uint8Array> {
  const program = nativeProgram('seccomp-compile')
  const target = targetOf(source)
  const { size, mtimeMs, ctimeMs } = await stat(program)
  // A profile that was compiled before was valid then, so reading it again is not needed on the way to a cell.
  const facts = JSON.stringify([source.text, target, size, mtimeMs, ctimeMs])
  const place = join(cacheDir, 'seccomp', `${createHash('sha256').update(facts).digest('hex')}.bpf`)
  const cached = await readCached(place)
  if (cached) return cached
  const filter = await compileLines(program, seccompLines(parseSeccompProfile(source.text, source.name), target))
  // A place that cannot be written costs the next start some milliseconds, nothing else.
  await keep(place, Buffer.concat([digestOf(filter), filter])).catch(() => undefined)
  return filter
}

/** The digest in front tells a file that a crash or a full disk cut short from a filter. */
async function readCached(place: string): Promise<Uint8Array | undefined> {
  const bytes = await readFile(place).catch(() => undefined)
  if (bytes === undefined || bytes.length <= DIGEST_BYTES) return undefined
  const filter = bytes.subarray(DIGEST_BYTES)
  return digestOf(filter).equals(bytes.subarray(0, DIGEST_BYTES)) ? filter : undefined
}

function digestOf(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest()
}

async function keep(place: string, bytes: Uint8Array): Promise<void> {
  const draft = `${place}.${randomUUID()}`
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

/** Runs the native compiler; an error of its names the line, and with it the rule. */
async function compileLines(program: string, lines: string): Promise<Uint8Array> {
  const child = spawn(program, [], { cwd: '/', env: {}, stdio: 'pipe' })
  const exited = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  // A compiler that refuses a line stops reading; its own words say more than the broken pipe.
  child.stdin.on('error', () => undefined).end(lines)
  const [filter, complaint, code] = await Promise.all([buffer(child.stdout), text(child.stderr), exited])
  if (code !== 0) throw refusal(complaint, lines)
  if (filter.length === 0 || filter.length % INSTRUCTION_BYTES !== 0) throw new SandboxError('internal', `a filter of ${filter.length} bytes is no program`)
  const instructions = filter.length / INSTRUCTION_BYTES
  if (instructions > MAX_INSTRUCTIONS) throw new SandboxError('invalid', `the filter has ${instructions} instructions; the kernel takes ${MAX_INSTRUCTIONS}`)
  return filter
}

function refusal(complaint: string, lines: string): SandboxError {
  const match = /line (\d+): (.*)/.exec(complaint)
  if (!match) return new SandboxError('internal', `seccomp-compile ended without a filter: ${complaint.trim() || 'no reason given'}`)
  const line = lines.split('\n')[Number(match[1]) - 1] ?? ''
  return new SandboxError('invalid', `seccomp profile: ${match[2]} (in '${line}')`)
}
