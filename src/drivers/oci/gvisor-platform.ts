/**
 * How gVisor runs what guests execute, chosen by trying: a container that does nothing is started on each platform in turn, and is given little time. `kvm` is never
 * tried: where a virtual machine does not work as it should, it hangs.
 */
import { SandboxError } from '../../contract/errors.js'
import { capture } from '../../sys/spawn.js'
import { tryContainer } from './container-trial.js'

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

/** Undefined when a program ran. Nothing of the host's is in its root but the runtime itself, which can tell its own version anywhere. */
async function tryPlatform(path: string, { flags, trialMs }: Gvisor & { readonly trialMs: number }): Promise<string | undefined> {
  const mounts = [{ destination: '/runsc', type: 'bind', source: path, options: ['bind', 'ro'] }]
  const trialled = await tryContainer({ path, flags, args: ['/runsc', '--version'], mounts, trialMs })
  if ('why' in trialled) return trialled.why
  return trialled.printed.includes('runsc') ? undefined : `it printed ${JSON.stringify(trialled.printed.slice(0, 80))}`
}
