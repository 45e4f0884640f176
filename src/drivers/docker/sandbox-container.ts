/**
 * A container that is the cell itself: the engine's runtime is gVisor, on whose kernel nothing can be built within it. So the engine is asked for all that the cell is
 * made of, at its place: the folders of the template, one disk with a size and a number of inodes, and the warden as the first process.
 */
import { type CellPlan, givenCapabilities, wardenPath } from '../../cell/arguments.js'
import { certificatesPath } from '../../cell/cell-network.js'
import { cgroupLimits } from '../../cell/cell-limits.js'
import { withSentry } from '../../cell/gvisor/cgroup.js'
import { diskPlace, sandboxWardenArguments, shownMounts } from '../../cell/gvisor/warden-words.js'
import { attached, bind, confined, heldTo, labelsOf } from './container.js'

export interface SandboxContainer {
  readonly plan: CellPlan
  readonly image: string
  readonly runtime: string
  readonly openFiles: number
}

/** The first process is told, before it touches anything, to wait until all around it was looked at and closed. */
export function sandboxArgv(plan: CellPlan): [string, ...string[]] {
  return [wardenPath, '--await', ...sandboxWardenArguments(plan, 'of-gvisor')]
}

/** Root is one of gVisor's kernel, and so are its capabilities; on the host nobody has them. */
export function sandboxContainer({ plan, image, runtime, openFiles }: SandboxContainer): object {
  const { spec } = plan
  return {
    Image: image,
    User: '0:0',
    Entrypoint: sandboxArgv(plan),
    Labels: labelsOf(spec.id),
    ...attached,
    HostConfig: {
      ...confined,
      CapAdd: givenCapabilities(plan),
      SecurityOpt: ['no-new-privileges'],
      // There is no /dev/shm but on the disk.
      IpcMode: 'none',
      ...heldTo(withSentry(cgroupLimits(spec, spec.limits))),
      Ulimits: [{ Name: 'nofile', Soft: openFiles, Hard: openFiles }],
      Mounts: [...boundFolders(plan).map(bindWhole), diskOf(plan)],
      Runtime: runtime,
    },
  }
}

export interface BoundFolder {
  readonly source: string
  readonly target: string
  /** With what is mounted below it. */
  readonly isWhole: boolean
}

/** What the engine binds of this machine's, read-only. */
export function boundFolders(plan: CellPlan): BoundFolder[] {
  const { root, network } = plan.spec
  const certificates = network?.certificates
  return [
    ...root.binds.map((each) => ({ ...each, isWhole: true })),
    ...shownMounts(plan).map(({ source, target }) => ({ source, target, isWhole: false })),
    ...(certificates === undefined ? [] : [{ source: certificates, target: certificatesPath, isWhole: false }]),
  ]
}

function bindWhole({ source, target, isWhole }: BoundFolder): object {
  const bound = bind(source, target, 'ro')
  return isWhole ? bound : { ...bound, BindOptions: { Propagation: 'rprivate', NonRecursive: true } }
}

/** A tmpfs of the host's, which its kernel holds to both; it goes with the container, and is known by its labels where it did not. */
function diskOf({ spec }: CellPlan): object {
  const { diskBytes, inodes } = spec.limits
  const Options = { type: 'tmpfs', device: 'tmpfs', o: `size=${diskBytes},nr_inodes=${inodes},mode=0755,nosuid,nodev` }
  return { Type: 'volume', Target: diskPlace, VolumeOptions: { NoCopy: true, Labels: labelsOf(spec.id), DriverConfig: { Name: 'local', Options } } }
}
