/**
 * Debian's package tool, with a state of its own: nothing of this machine's is changed and no right is needed, whoever runs it. Of the machine's configuration it has the
 * ways to the network and the sources; hooks, preferences and permissions to skip a signature are left out.
 */
import { existsSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { SandboxError } from '../contract/errors.js'
import { capture, spawnProcess } from './spawn.js'

export interface AptRun {
  /** The configuration that is read instead of the machine's. */
  readonly config: string
  readonly signal?: AbortSignal | undefined
  /** Of what is downloaded, from 0 to 1. */
  readonly onProgress?: (fraction: number, detail: string) => void
}

const apt = '/usr/bin/apt-get'
const aptConfig = '/usr/bin/apt-config'
/** apt-get changes its ids, and so forgets whose death is to be its own; `timeout` does not, and passes on what ends it. */
const bound = ['/usr/bin/setpriv', '--pdeathsig', 'TERM', '/usr/bin/timeout', '--kill-after=5', '3600']
const lookAtDiskMs = 500
/** Less than this is none: on a full disk apt-get waits for ever. */
const leastFreeBytes = 2 ** 20
const passedOn = ['http_proxy', 'https_proxy', 'ftp_proxy', 'no_proxy', 'HTTPS_PROXY', 'NO_PROXY']

export function hasApt(): boolean {
  return [apt, aptConfig].every((program) => existsSync(program))
}

/** Rejects with SandboxError('unavailable') in apt's own words. Resolves to what it printed. */
export async function runApt(args: readonly string[], { config, signal, onProgress }: AptRun): Promise<string> {
  signal?.throwIfAborted()
  const command = [apt, ...args, '-q', ...(onProgress ? ['-o', 'APT::Status-Fd=3'] : [])]
  const process = await spawnProcess(boundToUs(command), { cwd: '/', env: environment(config), descriptors: ['pipe'] })
  const stop = (): void => process.signal('SIGTERM')
  signal?.addEventListener('abort', stop, { once: true })
  const disk = watchDisk(dirname(config), stop)
  try {
    process.channel.end()
    const status = process.pipes.get(3)
    status?.on('error', () => undefined)
    if (status) createInterface({ input: status }).on('line', (line) => tell(line, onProgress))
    const [printed, { code }] = await Promise.all([text(process.channel), process.wait()])
    signal?.throwIfAborted()
    if (code !== 0) throw disk.refusal() ?? refusalOf(process.diagnosis())
    return printed
  } finally {
    disk.end()
    signal?.removeEventListener('abort', stop)
  }
}

/** Tells when nothing is left of the disk that a folder is on. */
function watchDisk(folder: string, onFull: () => void): { refusal(): SandboxError | undefined; end(): void } {
  let isFull = false
  const look = (): void => {
    const { bavail, bsize } = statfsSync(folder)
    if (bavail * bsize >= leastFreeBytes) return
    isFull = true
    onFull()
  }
  const timer = setInterval(look, lookAtDiskMs)
  return {
    refusal: () => (isFull ? new SandboxError('full', `no space is left in ${folder}`, { hint: `df -h ${folder}` }) : undefined),
    end: () => clearInterval(timer),
  }
}

/** How this machine reaches the network, as lines of a configuration. */
export async function networkSettings(): Promise<string[]> {
  const { stdout } = await capture([aptConfig, 'dump'], { env: plainEnvironment() })
  return stdout
    .toString('utf8')
    .split('\n')
    .filter((line) => /^Acquire::(?:http|https|ftp)(?:::| )/.test(line))
}

export interface PackageSource {
  readonly uri: string
  readonly suite: string
  readonly component: string
}

/** Where this machine's packages come from, as apt itself understands its files. */
export async function hostSources(): Promise<PackageSource[]> {
  const format = '$(REPO_URI)|$(RELEASE)|$(COMPONENT)'
  const { stdout } = await capture([apt, 'indextargets', '--format', format, 'Created-By: Packages'], { env: plainEnvironment() })
  const lines = [...new Set(stdout.toString('utf8').split('\n'))].filter((line) => line !== '')
  return lines.map((line) => {
    const [uri = '', suite = '', component = ''] = line.split('|')
    return { uri, suite, component }
  })
}

function tell(line: string, onProgress: AptRun['onProgress']): void {
  const match = /^dlstatus:[^:]*:([\d.]+):(.*)$/.exec(line)
  if (match) onProgress?.(Math.min(1, Number(match[1]) / 100), match[2] ?? '')
}

function boundToUs(command: string[]): [string, ...string[]] {
  return (existsSync(bound[0] as string) ? [...bound, ...command] : command) as [string, ...string[]]
}

function plainEnvironment(): Record<string, string> {
  const proxies = passedOn.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))
  return {
    PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
    LC_ALL: 'C.UTF-8',
    DEBIAN_FRONTEND: 'noninteractive',
    ...(Object.fromEntries(proxies) as Record<string, string>),
  }
}

function environment(config: string): Record<string, string> {
  // What it checks signatures with lies in files for a moment: beside the rest, where whoever sweeps finds them.
  return { ...plainEnvironment(), APT_CONFIG: config, TMPDIR: dirname(config) }
}

const meanings = [
  { said: /No space left|not have enough free space|Disk quota/i, code: 'full', why: 'there is no space left', hint: 'df -h' },
  {
    said: /NO_PUBKEY|not signed|GPG error|EXPKEYSIG|invalid signature|is not signed|Hash Sum mismatch/i,
    code: 'unavailable',
    why: 'a signature or a hash is not right',
  },
  {
    said: /Could not resolve|Temporary failure|Failed to fetch|Could not connect|Connection (?:failed|refused|timed out)|Unable to connect/i,
    code: 'unavailable',
    why: "Debian's packages cannot be reached",
    hint: 'apt-get update',
  },
  {
    said: /Unable to locate package|has no installation candidate|unmet dependencies/i,
    code: 'unavailable',
    why: 'the sources of apt here do not have what it needs',
  },
] as const satisfies readonly { said: RegExp; code: 'full' | 'unavailable'; why: string; hint?: string }[]

function refusalOf(words: string): SandboxError {
  const lines = words.split('\n').filter((line) => /^(?:E|Err|W):/.test(line))
  const said = (lines.find((line) => line.startsWith('E:')) ?? lines[0] ?? words.trim().split('\n').at(-1) ?? '').slice(0, 400)
  const meaning = meanings.find((each) => each.said.test(words))
  const hint = meaning !== undefined && 'hint' in meaning ? meaning.hint : 'apt-cache policy'
  return new SandboxError(meaning?.code ?? 'unavailable', `${meaning?.why ?? 'apt-get failed'}: ${said}`, { hint })
}
