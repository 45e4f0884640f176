/**
 * Runtimes whose containers are virtual machines. They are asked, and started once to see whether they do what they say; but no cell is opened in one: what holds around it,
 * and what its kernel says of the programs in it, nobody has looked at yet, and a wall that was never looked at is no tier.
 */
import { readFileSync } from 'node:fs'
import { findProgram, programPath, readHostFacts } from '../../cell/facts.js'
import { canMapRanges, lastLine } from '../../cell/judgement.js'
import { type Mechanism, probeHost } from '../../cell/probe.js'
import type { Driver, Obstacle } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { type Trialled, tryContainer } from './container-trial.js'
import type { OciFacts } from './probe.js'

export const vmRuntimeNames = ['krun', 'kata'] as const
export type VmRuntimeName = (typeof vmRuntimeNames)[number]

interface VmRuntime {
  readonly program: string
  readonly flags: readonly string[]
  /** What is to be known of a start that failed. */
  readonly remark?: string
}

const vmRuntimes: Readonly<Record<VmRuntimeName, VmRuntime>> = {
  // It is crun by another name.
  krun: { program: 'krun', flags: ['--cgroup-manager=disabled'] },
  kata: { program: 'kata-runtime', flags: [], remark: 'since version 2 it starts no container by itself, but only for containerd' },
}

export interface VmDriverOptions {
  /** What is asked, instead of what is found. */
  readonly path?: () => string | undefined
  readonly trialMs?: number
}

interface VmFacts extends OciFacts {
  /** Undefined where nothing could be tried. */
  readonly trial: Trialled | undefined
}

const usualTrialMs = 10_000
const tier = 'vm'
/** The strongest that can be had. */
const instead = 'glovebox run --min-tier gvisor -- true'
const bootIdPath = '/proc/sys/kernel/random/boot_id'

export function createVmDriver(name: VmRuntimeName, { path, trialMs = usualTrialMs }: VmDriverOptions = {}): Driver {
  const driver = `oci:${name}`
  const refused = (): never => {
    throw new SandboxError('unavailable', `${driver}: no cell is opened in a virtual machine`, { hint: 'glovebox doctor' })
  }
  const open = (): Promise<never> => new Promise((resolve) => resolve(refused()))
  const mechanism = vmMechanism(name, path ?? (() => programPath(vmRuntimes[name].program)), trialMs)
  const probe = (): ReturnType<Driver['probe']> =>
    probeHost({ mechanism, open, cgroups: () => Promise.resolve({ unavailable: 'not looked for' }), sharedFiles: () => '', trials: undefined })
  return { name: driver, tier, probe, open }
}

function vmMechanism(name: VmRuntimeName, path: () => string | undefined, trialMs: number): Mechanism<VmFacts> {
  const { program: runtime } = vmRuntimes[name]
  return {
    driver: `oci:${name}`,
    tier,
    ownKernel: true,
    runtime,
    wordsOf: () => undefined,
    readFacts: async (known) => {
      const facts = readHostFacts()
      const program = await findProgram(path(), known)
      const isTried = program !== undefined && canMapRanges(facts)
      return { ...facts, program, install: instead, trial: isTried ? await tryVm(name, program.path, trialMs) : undefined }
    },
    runtimeOf: ({ program }) => program,
    obstaclesBefore: (facts) => [obstacleOf(name, facts)],
    obstacleOf: (facts) => obstacleOf(name, facts),
  }
}

/** A program of the host's that tells which kernel it runs on. */
async function tryVm(name: VmRuntimeName, path: string, trialMs: number): Promise<Trialled> {
  const mounts = [
    { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'nodev', 'noexec'] },
    ...['/usr', '/lib', '/lib64'].map((source) => ({ destination: source, type: 'bind', source, options: ['rbind', 'ro'] })),
  ]
  const trialled = await tryContainer({ path, flags: vmRuntimes[name].flags, args: ['/usr/bin/cat', bootIdPath], mounts, trialMs })
  if ('why' in trialled || /^[\da-f-]{36}$/.test(trialled.printed.trim())) return trialled
  return { why: `it printed ${JSON.stringify(trialled.printed.slice(0, 80))}` }
}

/** There always is one; which tells how far it would go here. */
function obstacleOf(name: VmRuntimeName, { program, trial }: VmFacts): Obstacle {
  const { program: runtime, remark } = vmRuntimes[name]
  if (program === undefined)
    return { what: `no ${name}`, why: `the program ${runtime} is not installed; nor are cells opened in virtual machines yet`, hint: instead }
  if (trial === undefined) return { what: 'not root', why: `${runtime} is tried as root alone`, hint: 'sudo glovebox doctor' }
  if ('why' in trial) {
    const why = `${runtime}: ${lastLine(trial.why)}`
    return { what: 'a virtual machine did not start', why: remark === undefined ? why : `${why} (${remark})`, hint: instead }
  }
  if (trial.printed.trim() === readFileSync(bootIdPath, 'utf8').trim())
    return { what: 'no virtual machine', why: `what ${runtime} starts runs on the kernel of this machine`, hint: instead }
  return {
    what: 'not driven',
    why: `${runtime} starts virtual machines here, but what holds around a cell in one was never looked at, so none is opened`,
    hint: instead,
  }
}
