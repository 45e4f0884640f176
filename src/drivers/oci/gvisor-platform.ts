/**
 * How gVisor runs what guests execute, chosen by trying: a container that does nothing is started on each platform in turn, and is given little time. `kvm` is never
 * tried: where a virtual machine does not work as it should, it hangs.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../../contract/errors.js'
import { randomId } from '../../sys/random-id.js'
import { argumentsOf, findProcesses, killProcess } from '../../sys/processes.js'
import { capture } from '../../sys/spawn.js'
import { makeTempFolder, removeTree } from '../../sys/temp-folder.js'

/** The cheapest first. */
const platforms = ['systrap', 'ptrace'] as const
type Platform = (typeof platforms)[number]

export interface Gvisor {
  readonly platform: Platform
  /** What it is told beside where its state is. */
  readonly flags: readonly string[]
}

const askMs = 5000
const usualTrialMs = 10_000

/** Throws SandboxError('unavailable') that says of each platform why not. */
export async function chooseGvisor(path: string, trialMs = usualTrialMs): Promise<Gvisor> {
  const [known, flags] = await Promise.all([ask(path, ['help', 'platforms']), ask(path, ['flags'])])
  const whys: string[] = []
  for (const platform of platforms) {
    const gvisor = { platform, flags: flagsFor(platform, flags) }
    const why = known.split(/\s+/).includes(platform) ? await tryPlatform(path, { ...gvisor, trialMs }) : 'this runsc does not have it'
    if (why === undefined) return gvisor
    whys.push(`${platform}: ${why}`)
  }
  throw new SandboxError('unavailable', `runsc: no platform works here (${whys.join('; ')})`, { hint: 'glovebox doctor' })
}

/** No network but the loopback, no group of its own, no layer of its own over the root, and no file of the host's opened by the sentry itself. */
function flagsFor(platform: Platform, known: string): readonly string[] {
  const has = (name: string): boolean => new RegExp(`^\\s*-${name}\\b`, 'm').test(known)
  const optional = [...(has('overlay2') ? ['--overlay2=none'] : []), ...(has('directfs') ? ['--directfs=false'] : [])]
  return [`--platform=${platform}`, '--network=none', '--ignore-cgroups', ...optional]
}

async function ask(path: string, words: readonly string[]): Promise<string> {
  const { stdout, stderr } = await capture([path, ...words], { timeoutMs: askMs })
  return `${stdout.toString('utf8')}\n${stderr}`
}

/** Undefined when a program ran. */
async function tryPlatform(path: string, { flags, trialMs }: Gvisor & { readonly trialMs: number }): Promise<string | undefined> {
  const folder = await makeTempFolder('glovebox-gvisor-')
  const state = join(folder, 'state')
  try {
    await mkdir(join(folder, 'root'))
    await writeFile(join(folder, 'config.json'), JSON.stringify(trialConfig(path, folder)))
    const own = [path, '--root', state, ...flags] as const
    const { code, stdout, stderr } = await within(trialMs, capture([...own, 'run', '--bundle', folder, `trial-${randomId()}`], { timeoutMs: trialMs }))
    if (code === 0 && stdout.toString('utf8').includes('runsc')) return undefined
    return stderr.trim().split('\n').at(-1) || `it ended with ${code}`
  } finally {
    // What hangs is known by the folder that it was told of.
    findProcesses((pid) => argumentsOf(pid).some((word) => word.includes(folder))).forEach(killProcess)
    await removeTree(folder)
  }
}

type Ended = Pick<Awaited<ReturnType<typeof capture>>, 'code' | 'stdout' | 'stderr'>

/** Also of one whose children hold its output open when it was killed. */
async function within(milliseconds: number, ended: Promise<Ended>): Promise<Ended> {
  const late = new AbortController()
  const tooLate = sleep(milliseconds, failed(`no answer within ${milliseconds} ms`), { signal: late.signal })
  tooLate.catch(() => undefined)
  try {
    return await Promise.race([ended.catch(failed), tooLate])
  } finally {
    late.abort()
  }
}

function failed(error: unknown): Ended {
  return { code: -1, stdout: Buffer.alloc(0), stderr: error instanceof Error ? error.message : String(error) }
}

/** Nothing of the host's is in it but the runtime itself, which can tell its own version anywhere. */
function trialConfig(path: string, folder: string): object {
  return {
    ociVersion: '1.0.2',
    root: { path: join(folder, 'root'), readonly: true },
    process: { terminal: false, cwd: '/', user: { uid: 0, gid: 0 }, env: [], args: ['/runsc', '--version'], noNewPrivileges: true },
    mounts: [{ destination: '/runsc', type: 'bind', source: path, options: ['bind', 'ro'] }],
    linux: { namespaces: ['mount', 'pid', 'network', 'ipc', 'uts'].map((type) => ({ type })) },
  }
}
