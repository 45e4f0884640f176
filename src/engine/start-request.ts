import type { StartRequest } from '../channel/index.js'
import type { Cell, CellRun, GuestUser, Probe, TemplateRoot } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { Limits } from '../contract/limits.js'
import { checkCommand, checkEnv } from '../policy/bounds.js'
import type { RunPlan } from '../policy/run.js'

/** The kernel's numbers, under the names that a posture has for them. */
export const resources = { cpu: 0, fileSize: 1, core: 4, processes: 6, files: 7 } as const

export interface StartContext {
  readonly plan: RunPlan
  readonly user: GuestUser
  readonly cell: Cell
  readonly root: TemplateRoot
  readonly probe: Probe
  /** Of the sandbox; only for a run in a liner. */
  readonly limits?: Limits
}

/** All a program is started with but where it is counted. Nothing of this process's own environment or limits gets in. */
export function startRequest(context: StartContext): StartRequest {
  const { plan, user, cell, root } = context
  const argv = typeof plan.command === 'string' ? [root.shell, '-c', plan.command] : plan.command
  const env = environmentOf(context)
  checkCommand(argv)
  checkEnv(env)
  const { uid, gid, capabilities } = user
  const cwd = plan.cwd ?? cell.workdir
  const { stdin, terminal, aside } = plan
  const liner = linerOf(context)
  return {
    argv,
    env,
    cwd,
    uid,
    gid,
    capabilities,
    rlimits: rlimitsOf(context),
    stdin,
    ...(terminal && { terminal }),
    ...(aside && { aside }),
    ...(liner && { liner }),
  }
}

function linerOf({ plan, cell, limits }: StartContext): StartRequest['liner'] {
  if (!plan.liner) return undefined
  if (cell.liners === undefined || !limits) throw new SandboxError('unsupported', 'this cell gives no liners to its runs', { hint: 'glovebox doctor' })
  return { diskBytes: limits.diskBytes, inodes: limits.inodes }
}

/** The same, with where it is counted. */
export function countedIn<Request extends object>(request: Request, { group }: Pick<CellRun, 'group'>): Request & { readonly group?: string } {
  return group === undefined ? request : { ...request, group }
}

/** Who it is run as is not for a template to say. A run without a terminal says so, for programs believe TERM. */
function environmentOf({ plan, user, root, cell }: StartContext): Record<string, string> {
  return { ...baseEnvironment(root, user), ...cell.env, ...(plan.terminal && root.env.TERM === undefined && { TERM: 'xterm-256color' }), ...plan.env }
}

export function baseEnvironment(root: TemplateRoot, user: Pick<GuestUser, 'home' | 'name'>): Record<string, string> {
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    ...root.env,
    HOME: user.home,
    USER: user.name,
  }
}

/**
 * No core dumps; open files up to the limit, of which a program for which nobody asked has fewer at first; no file larger than the limit; no process that alone uses more
 * processor time than the run may. The number of processes is set here only where nothing else holds it: it counts all that a user of the cell runs,
 * and comes before what counts the refused forks.
 */
function rlimitsOf({ plan: { limits }, probe }: StartContext): StartRequest['rlimits'] {
  const { processes } = probe.limits
  return [
    { resource: resources.core, soft: 0n, hard: 0n },
    { resource: resources.files, soft: BigInt(limits.openFilesAtFirst), hard: BigInt(limits.openFiles) },
    both(resources.fileSize, limits.fileSizeBytes),
    // Whole seconds, and one more: what counts the whole run comes first.
    ...(limits.cpuTimeMs === undefined ? [] : [both(resources.cpu, Math.ceil(limits.cpuTimeMs / 1000) + 1)]),
    ...(processes.enforced && processes.rlimit ? [both(resources.processes, limits.processes)] : []),
  ]
}

function both(resource: number, value: number): StartRequest['rlimits'][number] {
  return { resource, soft: BigInt(value), hard: BigInt(value) }
}
