import { type Assault, assaultCases, denied } from './assault.js'
import { machineContainment } from './kernel-machine.js'

/** As `clone` flags; unshare takes the same, and that of time besides. */
const namespaceFlags: Readonly<Record<string, number>> = {
  user: 0x10000000,
  mount: 0x00020000,
  pid: 0x20000000,
  net: 0x40000000,
  ipc: 0x08000000,
  uts: 0x04000000,
  cgroup: 0x02000000,
}

/** Bad pointers and numbers: what is let through answers something else, and does nothing. */
const assaults: readonly Assault[] = [
  {
    id: 'clone-flags',
    threats: 'K-02',
    name: 'clone with the flag of any namespace is refused, also beside other flags',
    does: 'Calls clone with each flag, alone and with that of a user namespace.',
    means: 'The filter of namespaces can be gone around by clone.',
    errors: denied,
    defines: `def cloned(flags):
    r = call('clone', flags | 17, 0, 0, 0, 0)
    if r == 0: os._exit(0)
    os.waitpid(r, 0); return 'cloned'`,
    tries: Object.fromEntries(
      Object.entries(namespaceFlags).flatMap(([kind, flag]) => [
        [kind, `cloned(${flag})`],
        [`${kind} and user`, `cloned(${flag | 0x10000000})`],
      ]),
    ),
    controls: { 'no flag': 'cloned(0)' },
    needs: ['filters-syscalls'],
  },
  {
    id: 'time-namespace',
    threats: 'K-02 P-29',
    name: 'no namespace of time can be made',
    does: 'Calls unshare for a time namespace, alone and with one of users.',
    means: 'A program can move its own clocks.',
    errors: denied,
    tries: { alone: "forked(lambda: call('unshare', 0x80))", 'with a user namespace': "forked(lambda: call('unshare', 0x10000080))" },
    controls: { 'the clock': "__import__('time').clock_gettime(1)" },
    needs: ['filters-syscalls'],
  },
  {
    id: 'bpf-and-perf',
    threats: 'K-06 K-07',
    name: 'bpf programs, maps and every kind of perf event are refused',
    does: 'Loads a program, makes a map, and opens hardware, software, tracepoint and raw events.',
    means: 'A program can run code in the kernel, or watch what others do.',
    errors: denied,
    tries: {
      'a map': "os.close(call('bpf', 0, struct.pack('<IIIII', 2, 4, 4, 1, 0) + bytes(108), 128))",
      'a program': "call('bpf', 5, bytes(128), 128)",
      ...Object.fromEntries(
        ['hardware', 'software', 'tracepoint', 'cache', 'raw', 'breakpoint'].map((kind, type) => [
          kind,
          `os.close(call('perf_event_open', struct.pack('<II', ${type}, 112) + bytes(104), 0, -1, -1, 0))`,
        ]),
      ),
    },
    controls: { epoll: "__import__('select').epoll().close()" },
    needs: ['filters-syscalls'],
  },
  {
    id: 'io-uring',
    threats: 'K-08',
    name: 'io_uring is refused in all its calls',
    does: 'Calls io_uring_setup, io_uring_enter and io_uring_register.',
    means: 'System calls can be made where the filter does not see them.',
    errors: denied,
    tries: {
      setup: "os.close(call('io_uring_setup', 1, ctypes.create_string_buffer(256)))",
      enter: "call('io_uring_enter', -1, 0, 0, 0, None, 0)",
      register: "call('io_uring_register', -1, 0, None, 0)",
    },
    controls: { aio: "__import__('select').poll()" },
    needs: ['filters-syscalls'],
  },
  {
    id: 'userfaultfd',
    threats: 'K-09',
    name: 'userfaultfd, by which the kernel can be made to wait, is refused',
    does: 'Calls userfaultfd, for user mode only and for all faults.',
    means: 'A race in the kernel can be held open as long as an attacker likes.',
    errors: denied,
    tries: { all: "os.close(call('userfaultfd', 0))", 'user mode': "os.close(call('userfaultfd', 1))" },
    controls: { memory: 'len(bytearray(1 << 16))' },
    needs: ['filters-syscalls'],
  },
  {
    id: 'other-processes',
    threats: 'K-10 K-32',
    name: 'processes outside can be neither traced, read, written, copied from nor compared with',
    does: 'Aims ptrace, process_vm_readv and writev, pidfd_getfd, kcmp and move_pages at the first process and at one of the host.',
    means: 'Programs can reach into other processes.',
    errors: [...denied, 'ESRCH', 'ENOENT'],
    tries: ({ canaries: { process } }) => ({
      attach: `call('ptrace', 16, ${process.pid} if ${process.pid} != os.getpid() else 1, 0, 0)`,
      seize: "first(lambda: call('ptrace', 0x4206, 1, 0, 0))",
      read: 'first(lambda: peek(1))',
      write: "first(lambda: call('process_vm_writev', 1, struct.pack('PN', 0, 0), 1, struct.pack('PN', 0x400000, 8), 1, 0))",
      kcmp: "first(lambda: call('kcmp', os.getpid(), 1, 0, 0, 0))",
      move_pages: "first(lambda: call('move_pages', 1, 0, None, None, None, 0))",
      migrate_pages: "first(lambda: call('migrate_pages', 1, 8, bytes(8), bytes(8)))",
      process_madvise: "first(lambda: call('process_madvise', call('pidfd_open', 1, 0), struct.pack('PN', 0, 0), 1, 20, 0))",
    }),
    controls: { 'a child of its own': 'forked(lambda: None)' },
    needs: ['filters-syscalls'],
  },
  {
    id: 'traced-children',
    threats: 'K-11',
    name: 'a child that is traced by its parent is filtered as any program is',
    does: 'Has a child ask to be traced, and calls unshare and keyctl there.',
    means: 'A debugger can lead a program around its filter.',
    errors: [...denied, 'ESRCH'],
    defines: `def traced(act):
    def inside():
        tried(lambda: call('ptrace', 0, 0, 0, 0)); act()
    return forked(inside)`,
    tries: { unshare: "traced(lambda: call('unshare', 0x10000000))", keyctl: "traced(lambda: call('keyctl', 0, -3, 0, 0, 0))" },
    controls: { 'a child': 'forked(lambda: None)' },
    needs: ['filters-syscalls'],
  },
  {
    id: 'own-filters',
    threats: 'K-12',
    name: 'a filter that a program adds takes nothing away from the one that it has',
    does: 'Installs a filter that allows everything, and calls unshare and bpf under it.',
    means: 'A program can replace its filter.',
    errors: denied,
    defines: `def under_own_filter(act):
    def inside():
        code = ctypes.create_string_buffer(struct.pack('<HBBI', 6, 0, 0, 0x7fff0000))
        program = struct.pack('HP', 1, ctypes.addressof(code))
        tried(lambda: call('seccomp', 1, 0, program)); act()
    return forked(inside)`,
    tries: {
      unshare: "under_own_filter(lambda: call('unshare', 0x10000000))",
      bpf: "under_own_filter(lambda: os.close(call('bpf', 0, struct.pack('<IIIII', 2, 4, 4, 1, 0) + bytes(108), 128)))",
    },
    controls: { 'a plain child': 'forked(lambda: None)' },
    needs: ['filters-syscalls'],
  },
]

export const kernelContainment = [...assaultCases('kernel', assaults), ...machineContainment]
