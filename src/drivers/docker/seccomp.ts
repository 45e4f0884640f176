import { defaultSeccompText } from '../../sys/seccomp.js'
import { parseSeccompProfile } from '../../sys/seccomp-profile.js'

/** What is called to build the cell before anything of a guest's is there; the warden's own filter refuses all of it from then on. */
const building = ['clone', 'mount', 'mount_setattr', 'move_mount', 'open_tree', 'pivot_root', 'sethostname', 'umount2', 'unshare']
const notThere = 38

/**
 * The profile of the container, for the engine: the names of our default profile that are allowed in any case, and those that a cell is built with. It is the outermost
 * of three: the warden sets a filter of its own once the cell is built, and each program is under the one that the engine of this platform compiled, by names and arguments.
 */
export function containerProfile(): string {
  const { syscalls } = parseSeccompProfile(defaultSeccompText(), 'default.json')
  const allowed = (syscalls ?? []).flatMap(({ action, name, names = name === undefined ? [] : [name] }) => (action === 'allow' ? names : []))
  return JSON.stringify({
    defaultAction: 'SCMP_ACT_ERRNO',
    // Every other way into the kernel of the same machine is closed.
    archMap: [
      { architecture: 'SCMP_ARCH_X86_64', subArchitectures: [] },
      { architecture: 'SCMP_ARCH_AARCH64', subArchitectures: [] },
    ],
    syscalls: [
      { names: [...new Set([...allowed, ...building])].sort(), action: 'SCMP_ACT_ALLOW' },
      { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: notThere },
    ],
  })
}
