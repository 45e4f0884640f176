import { type CellPlan, givenCapabilities } from '../arguments.js'
import { capabilityMask } from '../capabilities.js'
import type { Expectation, Json } from '../../contract/posture.js'

/** As whom the sentry runs, in a user namespace that has no other id: gVisor gives the choice to nobody. */
const nobody = 65_534

export interface SandboxExpectations {
  readonly plan: CellPlan
  readonly cgroup: 'cell' | 'none'
  /** All that the gofer can reach. */
  readonly mounts: Json
}

/** What must be observed of a sandbox that is built by this plan, whatever was built; the limits apart. */
export function expectedOfSandbox({ plan, cgroup, mounts }: SandboxExpectations): readonly Expectation[] {
  const { ids } = plan
  if (ids.kind === 'single') throw new Error('a cell with a single id')
  const map = [[nobody, nobody, 1]]
  const own = Object.fromEntries(['ipc', 'mnt', 'net', 'user', 'uts'].map((name) => [name, 'own']))
  return [
    { control: 'namespaces', value: own },
    { control: 'uid-map', value: map },
    { control: 'gid-map', value: map },
    { control: 'interfaces', value: ['lo'] },
    { control: 'routes', value: [] },
    // Those of guests are gVisor's own.
    { control: 'sockets', value: { tcp: 0, tcp6: 0, udp: 0, udp6: 0, other: 0 } },
    { control: 'mounts', value: mounts },
    { control: 'sentry', value: { uids: [nobody], gids: [nobody], ...wall(cgroup) } },
    { control: 'gofer', value: { uids: [ids.base], gids: [ids.base], ...wall(cgroup) } },
    { control: 'kernel', value: { isGvisor: true } },
    { control: 'warden', value: expectedWarden(plan) },
  ]
}

function wall(cgroup: 'cell' | 'none'): { readonly [name: string]: Json } {
  return { groups: [], noNewPrivs: true, seccomp: 2, cgroup }
}

/** It mounts nothing any more, and has set a filter of its own. */
function expectedWarden(plan: CellPlan): Json {
  const kept = capabilityMask(givenCapabilities(plan).filter((name) => !['SYS_ADMIN', 'NET_ADMIN'].includes(name))).toString(16)
  return { capabilities: { effective: kept, permitted: kept, inheritable: '0', bounding: kept, ambient: '0' }, seccomp: 2 }
}
