import type { StartRequest } from '../channel/index.js'
import type { Cell, GuestUser, Probe, TemplateRoot } from '../contract/driver.js'
import type { Limits } from '../contract/limits.js'
import { checkCommand, checkEnv } from '../policy/bounds.js'
import type { RunPlan } from '../policy/run.js'

const resources = { fileSize: 1, core: 4, processes: 6, files: 7 } as const
/** Programs that use select() break when they are given more without having asked. */
const softFiles = 1024n

export interface StartContext {
  readonly plan: RunPlan
  readonly user: GuestUser
  readonly cell: Cell
  readonly root: TemplateRoot
  readonly limits: Limits
  readonly probe: Probe
}

/** All a program is started with. Nothing of this process's own environment or limits gets in. */
export function startRequest(context: StartContext): StartRequest {
  const { plan, user, cell, root } = context
  const argv = typeof plan.command === 'string' ? [root.shell, '-c', plan.command] : plan.command
  const env = environmentOf(context)
  checkCommand(argv)
  checkEnv(env)
  const { uid, gid, capabilities } = user
  return { argv, env, cwd: plan.cwd ?? cell.workdir, uid, gid, capabilities, rlimits: rlimitsOf(context), stdin: plan.stdin }
}

/** TERM is missing on purpose: a run has no terminal, and programs believe the variable. */
function environmentOf({ plan, user, root }: StartContext): Record<string, string> {
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: user.home,
    USER: user.name,
    LANG: 'C.UTF-8',
    ...root.env,
    ...plan.env,
  }
}

/**
 * No core dumps; at most 1,024 open files, which a program may raise to the limit; no file larger than the limit. The number of
 * processes is set here too, but only where the driver says that it holds: without a user namespace of its own a cell would count what else
 * the host's user runs.
 */
function rlimitsOf({ limits, probe }: StartContext): StartRequest['rlimits'] {
  const [processes, files, fileSize] = [BigInt(limits.processes), BigInt(limits.openFiles), BigInt(limits.fileSizeBytes)]
  return [
    { resource: resources.core, soft: 0n, hard: 0n },
    { resource: resources.files, soft: files < softFiles ? files : softFiles, hard: files },
    { resource: resources.fileSize, soft: fileSize, hard: fileSize },
    ...(probe.limits.processes.enforced ? [{ resource: resources.processes, soft: processes, hard: processes }] : []),
  ]
}
