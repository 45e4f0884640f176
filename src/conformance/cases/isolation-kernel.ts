import type { Attack } from '../attack.js'
import { attackCase } from '../attack.js'
import type { Case } from '../subject.js'

const namespaceFlags: Readonly<Record<string, number>> = {
  user: 0x10000000,
  mount: 0x00020000,
  pid: 0x20000000,
  net: 0x40000000,
  ipc: 0x08000000,
  uts: 0x04000000,
  cgroup: 0x02000000,
}

/** Socket families that reach past a network namespace or into rarely walked parts of the kernel. */
const families: Readonly<Record<string, number>> = {
  vsock: 40,
  alg: 38,
  packet: 17,
  bluetooth: 31,
  can: 29,
  tipc: 30,
  rds: 21,
  key: 15,
  xdp: 44,
  rxrpc: 33,
  smc: 43,
  qipcrtr: 42,
  nfc: 39,
}

const denied = ['EPERM', 'EACCES', 'ENOSYS']

const attacks: readonly Attack[] = [
  {
    id: 'unshare',
    name: 'no new namespace can be made',
    needs: ['filters-syscalls'],
    errors: denied,
    tries: {
      ...Object.fromEntries(Object.entries(namespaceFlags).map(([kind, flag]) => [`unshare ${kind}`, `forked(lambda: call('unshare', ${flag}))`])),
      'clone user': `(lambda r: os._exit(0) if r == 0 else os.waitpid(r, 0))(call('clone', ${0x10000000 + 17}, 0, 0, 0, 0))`,
    },
    controls: { 'a fork': 'forked(lambda: None)' },
  },
  {
    id: 'clone3',
    name: 'clone3, whose flags no filter can see, is answered as if it did not exist',
    needs: ['filters-syscalls'],
    errors: ['ENOSYS'],
    tries: { clone3: "call('clone3', None, 0)" },
    controls: { 'a thread': "__import__('threading').Thread(target=lambda: None).start()" },
  },
  {
    id: 'setns',
    name: 'no other namespace can be entered',
    needs: ['filters-syscalls'],
    // What is hidden cannot be entered either.
    errors: [...denied, 'ENOENT'],
    tries: {
      "pid 1's net": "first(lambda: forked(lambda: call('setns', os.open('/proc/1/ns/net', os.O_RDONLY), 0)))",
      'its own': "forked(lambda: call('setns', os.open('/proc/self/ns/net', os.O_RDONLY), 0))",
      'its own by pidfd': "forked(lambda: call('setns', call('pidfd_open', os.getpid(), 0), 0x04000000))",
    },
    controls: { 'reading its own': "os.readlink('/proc/self/ns/net')" },
  },
  {
    id: 'mount',
    name: 'nothing can be mounted, unmounted, remounted or changed root',
    errors: denied,
    tries: {
      tmpfs: "mounted(b'tmpfs')",
      proc: "mounted(b'proc')",
      bind: "mounted(b'bind', b'/usr')",
      cgroup2: "mounted(b'cgroup2')",
      'umount /proc': "apart(lambda: call('umount2', b'/proc', 2))",
      fsopen: "os.close(call('fsopen', b'tmpfs', 0))",
      open_tree: "os.close(call('open_tree', -100, b'/usr', 1))",
      chroot: "forked(lambda: call('chroot', b'/usr'))",
      'as root of a namespace of its own': "forked(lambda: (call('unshare', 0x10020000), call('mount', b'none', b'/tmp', b'tmpfs', 0, None)))",
    },
    controls: { 'a folder': "[os.mkdir('place'), os.rmdir('place')]" },
  },
  {
    id: 'kernel-keys',
    name: 'the keyrings of the kernel are out of reach',
    needs: ['filters-syscalls'],
    errors: denied,
    tries: {
      add_key: "call('add_key', b'user', b'gbx', b'x', 1, -2)",
      keyctl: "call('keyctl', 0, -3, 1)",
      request_key: "forked(lambda: (call('add_key', b'user', b'gbx', b'x', 1, -2), call('request_key', b'user', b'gbx', None, 0)))",
    },
    controls: { 'a harmless call': "call('getpid')" },
  },
  {
    id: 'wide-calls',
    name: 'io_uring, bpf, perf and the like are not for guests',
    needs: ['filters-syscalls'],
    errors: denied,
    tries: {
      io_uring_setup: "os.close(call('io_uring_setup', 1, ctypes.create_string_buffer(256)))",
      bpf: "os.close(call('bpf', 0, struct.pack('<IIIII', 2, 4, 4, 1, 0) + bytes(108), 128))",
      perf_event_open: "os.close(call('perf_event_open', struct.pack('<II', 1, 112) + bytes(104), 0, -1, -1, 0))",
      userfaultfd: "os.close(call('userfaultfd', 0))",
      syslog: "call('syslog', 10, None, 0)",
      'another personality': "call('personality', 0x0400000)",
    },
    controls: { epoll: "__import__('select').epoll().close()", 'its own personality': "tried(lambda: call('personality', 0xffffffff), ['EINVAL'])" },
  },
  {
    id: 'socket-families',
    name: 'socket families that reach past the cell cannot be opened, AF_VSOCK first of all',
    needs: ['filters-syscalls'],
    errors: [...denied, 'EAFNOSUPPORT', 'EPROTONOSUPPORT', 'ESOCKTNOSUPPORT'],
    tries: Object.fromEntries(
      Object.entries(families).map(([name, number]) => [name, `socket.socket(${number}, ${name === 'alg' ? 5 : name === 'vsock' ? 1 : 3}, 0).close()`]),
    ),
    controls: { inet: 'socket.socket(socket.AF_INET).close()', inet6: 'socket.socket(socket.AF_INET6).close()', unix: 'socket.socketpair()' },
  },
  {
    id: 'vsock',
    name: 'an AF_VSOCK socket, which no network namespace holds, cannot be had',
    needs: ['filters-syscalls'],
    errors: [...denied, 'EAFNOSUPPORT'],
    tries: {
      stream: 'socket.socket(40, socket.SOCK_STREAM).close()',
      datagram: 'socket.socket(40, socket.SOCK_DGRAM).close()',
      seqpacket: 'socket.socket(40, 5).close()',
    },
    controls: { inet: 'socket.socket(socket.AF_INET).close()' },
  },
  {
    id: 'typed-input',
    name: 'nothing can be typed into a terminal on behalf of someone else',
    needs: ['filters-syscalls'],
    errors: [...denied, 'EIO'],
    tries: {
      TIOCSTI: "(lambda pair: __import__('fcntl').ioctl(pair[1], 0x5412, b'x'))(os.openpty())",
      'TIOCSTI on a terminal of its own': 'forked(type_into_own_terminal)',
      'TIOCSTI with high bits': "(lambda pair: call('ioctl', pair[1], 0x100005412, b'x'))(os.openpty())",
    },
    controls: { 'the size of a terminal': "(lambda pair: __import__('fcntl').ioctl(pair[1], 0x5413, bytes(8)))(os.openpty())" },
  },
]

export const kernelIsolationCases: readonly Case[] = attacks.map(attackCase)
