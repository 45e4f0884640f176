import {
  type CellPlan,
  type CellPrograms,
  cellVariable,
  givenCapabilities,
  launcherArguments,
  userId,
  wardenArguments,
  wardenId,
  wardenPath,
} from '../../cell/arguments.js'
import type { Capability } from '../../cell/capabilities.js'
import { inspectorDescriptor } from '../../cell/placed-mounts.js'
import { looseMounts, ownDevices, rootWords } from '../../cell/root-words.js'

export interface BwrapPrograms extends CellPrograms {
  readonly bwrap: string
}

export interface BwrapPlan extends CellPlan {
  readonly programs: BwrapPrograms
  /** Whether the launcher does itself what bwrap is told, where it may. */
  readonly builds?: boolean
}

const infoFd = 3
const blockFd = 4
/** The one command that builds a cell: launcher, bwrap and warden, each with its arguments. */
export function cellArgv(plan: BwrapPlan): [string, ...string[]] {
  const { programs } = plan
  return [
    programs.launcher,
    ...launcherArguments(plan),
    ...idArguments(plan),
    '--',
    programs.bwrap,
    ...bwrapArguments(plan),
    '--',
    wardenPath,
    ...wardenArguments(plan),
  ]
}

/** Ids are written from outside, and dropped to those of the warden. */
function idArguments(plan: BwrapPlan): string[] {
  const { ids, builds } = plan
  if (ids.kind === 'single') return []
  return [
    ...['--map', `${ids.base}`, `${ids.size}`, `${infoFd}`, `${blockFd}`],
    ...['--inspect', `${inspectorDescriptor(plan)}`],
    ...(builds ? ['--build'] : []),
    ...['--drop', `${ids.base + wardenId}`],
  ]
}

function bwrapArguments(plan: BwrapPlan): string[] {
  const { spec, ids } = plan
  const isSingle = ids.kind === 'single'
  return [
    ...['--unshare-all', '--unshare-user', '--as-pid-1', '--die-with-parent', '--hostname', 'glovebox'],
    ...['--clearenv', '--setenv', cellVariable, spec.id],
    ...(isSingle ? ['--uid', `${userId}`, '--gid', `${userId}`] : ['--info-fd', `${infoFd}`, '--userns-block-fd', `${blockFd}`]),
    ...['--cap-drop', 'ALL', ...givenCapabilities(plan).flatMap(addCapability)],
    ...rootWords(plan, ['--proc', '/proc', ...(isSingle ? ownDevices() : ['--dev-bind', '/tmp/dev', '/dev'])]),
    ...looseMounts(plan).flatMap(({ access, source, target }) => [access === 'rw' ? '--bind' : '--ro-bind', source, target]),
  ]
}

function addCapability(name: Capability): string[] {
  return ['--cap-add', `CAP_${name}`]
}
