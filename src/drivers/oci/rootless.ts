/**
 * Containers of an ordinary user, who has one id to give:
 *
 *   launcher (monitor) ── runtime, where that id is root's ── launcher, first process of the container ── warden, where it is the guest's
 *
 * The runtime is shown a root of our making, as with root; in it is what the cell is made of, and the launcher, which makes the cell as bwrap would.
 */
import { basename } from 'node:path'
import { type CellPlan, cellVariable, givenCapabilities, guestDoors, stageName, userId, wardenArguments, wardenPath } from '../../cell/arguments.js'
import { certificatesDescriptor, placedMounts } from '../../cell/placed-mounts.js'
import { passCertificates } from '../../cell/cell-network.js'
import { looseMounts, ownDevices, rootWords } from '../../cell/root-words.js'
import type { Bundle } from './bundles.js'
import { placeOfOnlooker } from './cgroup-place.js'
import { newRoot } from './config.js'

/** Where things are in the container, before the cell is built out of them. */
const inContainer = { warden: '/warden', template: '/template', mounts: '/mounts' } as const

/** Named like the bundle: whoever the runtime starts is known by what is mounted there, when it has no word of the bundle in its arguments. */
function launcherPlace(bundle: string): string {
  return `/${basename(bundle)}`
}

/** The kernel lets nobody give the id of a root away who could not give files capabilities, were it only in a user namespace of its own. */
const givingAway = ['CAP_SETFCAP']

/** Where the launcher shows the bundle to the runtime: the folders of an ordinary user may lie below /tmp, which is covered there. */
export function bundleSeen({ folder }: Bundle): Pick<Bundle, 'folder' | 'state'> {
  const seen = `/tmp/${basename(folder)}`
  return { folder: seen, state: `${seen}/state` }
}

export interface RootlessCommand {
  readonly plan: CellPlan
  /** The folder of the bundle. */
  readonly bundle: string
  /** The runtime and its words. */
  readonly runtime: readonly string[]
  readonly place?: ReturnType<typeof placeOfOnlooker>
}

/** The one command that builds a cell: the launcher with its arguments, what the container is made of, and the runtime with its own. */
export function rootlessArgv({ plan, bundle, runtime, place = placeOfOnlooker() }: RootlessCommand): [string, ...string[]] {
  const { spec, ownerPid, programs, cgroups } = plan
  return [
    programs.launcher,
    ...['--parent', `${ownerPid}`, ...(cgroups ? ['--await'] : [])],
    ...handed(plan).flatMap(({ given }) => given),
    ...spec.root.binds.flatMap(({ source }, index) => ['--stage', stageName(index), source]),
    ...placedMounts(plan).flatMap(({ name, source }) => ['--stage', name, source.path]),
    ...['--stage', 'warden', programs.warden, '--stage', 'launcher', programs.launcher, '--stage', basename(bundle), bundle],
    ...place.fixed.flatMap((path) => ['--fix', path]),
    ...place.hidden.flatMap((path) => ['--hide', path]),
    ...['--runtime', '0', '--rootless', '--'],
    ...containerWords(plan, bundle),
    ...['--', ...runtime],
  ]
}

function containerWords(plan: CellPlan, bundle: string): string[] {
  return [
    ...['--dir', '/proc', '--dir', newRoot],
    ...ownDevices(),
    ...plan.spec.root.binds.flatMap((_, index) => ['--ro-bind', `/tmp/${stageName(index)}`, templatePlace(index)]),
    ...placedMounts(plan).flatMap(({ name, mode }) => [mode === 'rw' ? '--bind' : '--ro-bind', `/tmp/${name}`, mountPlace(name)]),
    ...['--ro-bind', '/tmp/warden', inContainer.warden, '--ro-bind', '/tmp/launcher', launcherPlace(bundle)],
  ]
}

/** The container, as the OCI runtime specification tells it. Its user namespace is there already, and its first process makes the cgroup namespace when it is in its groups. */
export function rootlessConfig(plan: CellPlan, bundle: string): object {
  const capabilities = { bounding: givingAway, effective: givingAway, inheritable: [], permitted: givingAway, ambient: [] }
  return {
    ociVersion: '1.0.2',
    hostname: 'glovebox',
    root: { path: newRoot, readonly: true },
    process: { terminal: false, cwd: '/', user: { uid: 0, gid: 0 }, env: [], args: withinArgv(plan, bundle), capabilities, noNewPrivileges: true },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'nodev', 'noexec'] },
      // As it is: a runtime that finds no mount of its own there would make devices.
      { destination: '/dev', type: 'bind', source: `${newRoot}/dev`, options: ['rbind'] },
    ],
    linux: { namespaces: ['mount', 'pid', 'network', 'ipc', 'uts'].map((type) => ({ type })) },
  }
}

/** What the first process of the container is told: the launcher, the words for a cell, and the warden with its own. */
function withinArgv(plan: CellPlan, bundle: string): string[] {
  const seen = planWithin(plan)
  return [
    launcherPlace(bundle),
    ...['--within', `${userId}`, ...handed(plan).flatMap(({ taken }) => taken)],
    ...['--', 'bwrap', '--unshare-all', '--hostname', 'glovebox', '--clearenv', '--setenv', cellVariable, plan.spec.id],
    ...['--cap-drop', 'ALL', ...givenCapabilities(plan).flatMap((name) => ['--cap-add', `CAP_${name}`])],
    ...rootWords(seen, ['--proc', '/proc', ...ownDevices()]),
    ...looseMounts(seen).flatMap(({ access, source, target }) => [access === 'rw' ? '--bind' : '--ro-bind', source, target]),
    ...['--', wardenPath, ...wardenArguments(plan)],
  ]
}

/** The same, of what the container shows. */
function planWithin(plan: CellPlan): CellPlan {
  const { spec, programs, sources = [] } = plan
  const binds = spec.root.binds.map(({ target }, index) => ({ source: templatePlace(index), target }))
  return {
    ...plan,
    spec: { ...spec, root: { ...spec.root, binds } },
    programs: { ...programs, warden: inContainer.warden },
    sources: sources.map((source, index) => ({ ...source, path: mountPlace(`mount${index}`) })),
  }
}

function templatePlace(index: number): string {
  return `${inContainer.template}/${index}`
}

function mountPlace(name: string): string {
  return `${inContainer.mounts}/${name}`
}

interface Handed {
  /** How the launcher has it for the runtime. */
  readonly given: readonly string[]
  /** How the launcher in the container takes it from there. */
  readonly taken: readonly string[]
}

const firstHanded = 3

/** What comes to the cell through the runtime, which hands on descriptors from 3 up. */
function handed(plan: CellPlan): Handed[] {
  const groups = (plan.cgroups?.joins ?? []).map(
    (path) =>
      (at: string): Handed => ({ given: ['--open', at, path], taken: ['--enter', at] }),
  )
  const doors = guestDoors(plan).map(({ opened: [option = '', wanted = '', path = ''] }) => (at: string): Handed => {
    return { given: [option, at, path], taken: ['--pass', at, wanted] }
  })
  const passed = [...placedMounts(plan).map(({ inherited, handed: wanted }) => [`${inherited}`, `${wanted}`] as const), ...passedCertificates(plan)].map(
    ([inherited, wanted]) =>
      (at: string): Handed => ({ given: ['--pass', inherited, at], taken: ['--pass', at, wanted] }),
  )
  return [...groups, ...doors, ...passed].map((make, index) => make(`${firstHanded + index}`))
}

function passedCertificates(plan: CellPlan): (readonly [string, string])[] {
  const [, inherited, wanted] = passCertificates(plan.spec, certificatesDescriptor(plan))
  return inherited === undefined || wanted === undefined ? [] : [[inherited, wanted]]
}

/** How many descriptors the runtime hands on. */
export function handedCount(plan: CellPlan): number {
  return handed(plan).length
}
