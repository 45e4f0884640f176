import { ensure, ensureExited, ensureSame } from '../check.js'
import { withSandbox } from '../guest.js'
import type { Subject, SubjectSandbox } from '../subject.js'
import { type ContainmentCase, places as allPlaces } from './containment.js'

/** Calls that no guest may make, by their numbers on x64 and arm64; undefined: not there. */
const forbidden: Readonly<Record<string, readonly [x64: number | undefined, arm64: number | undefined]>> = {
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  swapon: [167, 224],
  swapoff: [168, 225],
  reboot: [169, 142],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  iopl: [172, undefined],
  ioperm: [173, undefined],
  init_module: [175, 105],
  delete_module: [176, 106],
  finit_module: [313, 273],
  quotactl: [179, 60],
  acct: [163, 89],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  lookup_dcookie: [212, 18],
  vhangup: [153, 58],
  chroot: [161, 51],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  perf_event_open: [298, 241],
  fanotify_init: [300, 262],
  open_by_handle_at: [304, 265],
  setns: [308, 268],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  kcmp: [312, 272],
  bpf: [321, 280],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  clone3: [435, 435],
  pidfd_getfd: [438, 438],
  mount_setattr: [442, 442],
  quotactl_fd: [443, 443],
  modify_ldt: [154, undefined],
  uselib: [134, undefined],
  _sysctl: [156, undefined],
}

/** EPERM, EACCES, ENOSYS, or SIGSYS. */
const denials = ['1', '13', '38', '!31']
const lastCall = 470

async function probe(subject: Subject, sandbox: SubjectSandbox): Promise<readonly (readonly string[])[]> {
  const program = await subject.host.prober()
  ensure(program !== undefined, 'the prober must be built for this machine: npm run native', 'there is none')
  const command = 'cat >prober && chmod 755 prober && ./prober; code=$?; rm -f prober; exit $code'
  const said = ensureExited(await sandbox.run(['sh', '-c', command], { stdin: program }))
  return said.split('\n').map((line) => line.split(' '))
}

const everyCall: ContainmentCase = {
  id: 'kernel/every-call',
  name: 'of all system calls, tried with nothing but zeros, those that no guest may make are refused, and whoever asks survives',
  group: 'kernel',
  threats: ['K-25', 'K-14', 'K-13'],
  tries: `Makes the system calls 0 to ${lastCall}, each in a process of its own, by a program in C.`,
  means: 'Parts of the kernel are open to programs that were meant to be closed.',
  needs: ['isolates', 'filters-syscalls'],
  places: allPlaces,
  shares: true,
  run: (subject) =>
    withSandbox(subject, async (sandbox) => {
      const lines = await probe(subject, sandbox)
      const answers = new Map(lines.filter(([kind]) => kind === 'call').map(([, number = '', answer = '']) => [Number(number), answer]))
      ensureSame([answers.size, lines.some(([word]) => word === 'done')], [lastCall + 1, true], 'the calls that were answered, and whether the prober lived')
      const isX64 = lines.some(([kind]) => kind === 'entry')
      const open = Object.entries(forbidden).filter(([, [x64, arm64]]) => {
        const number = isX64 ? x64 : arm64
        return number !== undefined && !denials.includes(answers.get(number) ?? '')
      })
      ensureSame(
        Object.fromEntries(open.map(([name, [x64, arm64]]) => [name, answers.get((isX64 ? x64 : arm64) ?? -1)])),
        {},
        'the calls that were let through',
      )
      const denied = [...answers.values()].filter((answer) => denials.includes(answer)).length
      return `${denied} of ${answers.size} refused`
    }),
}

const otherEntries: ContainmentCase = {
  id: 'kernel/other-entries',
  name: 'the entries of 32-bit programs and of x32 are closed',
  group: 'kernel',
  threats: ['K-27', 'K-25'],
  tries: 'Calls getpid by int 0x80 and by its x32 number, in a program in C.',
  means: 'The filter, which knows one set of numbers, is gone around by another.',
  needs: ['isolates', 'filters-syscalls'],
  places: allPlaces,
  shares: true,
  run: (subject) =>
    withSandbox(subject, async (sandbox) => {
      const entries = (await probe(subject, sandbox)).filter(([kind]) => kind === 'entry')
      const through = entries.filter(([, , answer]) => answer === '0')
      ensureSame(through, [], 'the entries that answered')
      return entries.length === 0 ? 'this processor has none' : entries.map(([, name, answer]) => `${name} ${answer}`).join(', ')
    }),
}

export const proberContainment: readonly ContainmentCase[] = [everyCall, otherEntries]
