import { type Assault, assaultCases, denied } from './assault.js'

const wideNetlink: Readonly<Record<string, number>> = { audit: 9, uevents: 15, netfilter: 12, xfrm: 6, crypto: 21, iscsi: 8, scsi: 18, connector: 11, rdma: 20 }

/** What is the whole machine's. Bad pointers and numbers: what is let through answers something else, and does nothing. */
const assaults: readonly Assault[] = [
  {
    id: 'modules',
    threats: 'K-13',
    name: 'no module can be loaded or unloaded',
    does: 'Calls init_module, finit_module and delete_module.',
    means: 'Code of a guest can run in the kernel.',
    errors: denied,
    tries: {
      init_module: "call('init_module', None, 0, b'')",
      finit_module: "call('finit_module', -1, b'', 0)",
      delete_module: "call('delete_module', b'gbx_no_such_module', 0o4000)",
    },
    controls: { 'the version': "found(read('/proc/version'))" },
  },
  {
    id: 'swap-and-accounting',
    threats: 'K-14',
    name: 'swap, accounting and quotas are out of reach',
    does: 'Calls swapon, swapoff, acct and quotactl.',
    means: 'A program has rights over the whole machine.',
    errors: denied,
    tries: {
      swapon: "call('swapon', 1, 0)",
      swapoff: "call('swapoff', 1)",
      acct: "call('acct', 1)",
      quotactl: "call('quotactl', 0x7fffff00, b'/no/such', 0, None)",
      quotactl_fd: "call('quotactl_fd', -1, 0x7fffff00, 0, None)",
    },
    controls: { 'its usage': "__import__('resource').getrusage(0).ru_maxrss" },
    needs: ['filters-syscalls'],
  },
  {
    id: 'clocks',
    threats: 'K-14',
    name: 'no clock can be set',
    does: 'Calls settimeofday, clock_settime, adjtimex and clock_adjtime.',
    means: 'A program can change the time of the host.',
    errors: denied,
    tries: {
      settimeofday: "call('settimeofday', 1, None)",
      clock_settime: "call('clock_settime', 0, 1)",
      adjtimex: "call('adjtimex', 1)",
      clock_adjtime: "call('clock_adjtime', 0, 1)",
    },
    controls: { 'reading one': "__import__('time').clock_gettime(0)" },
    needs: ['filters-syscalls'],
  },
  {
    id: 'names-of-the-machine',
    threats: 'K-14 K-29',
    name: 'the machine cannot be renamed, and its name is not told',
    does: 'Calls sethostname and setdomainname, and compares its own name.',
    means: 'A program has rights over the machine, or sees which one it is on.',
    errors: [...denied, 'ENOENT'],
    tries: {
      sethostname: "call('sethostname', 1, 1)",
      setdomainname: "call('setdomainname', 1, 1)",
    },
    controls: { 'its own name': 'found(os.uname().nodename)' },
    needs: ['filters-syscalls'],
  },
  {
    id: 'ports-and-reboot',
    threats: 'K-14 K-15',
    name: 'ports of devices, reboot and another kernel are out of reach',
    does: 'Calls iopl, ioperm, reboot, kexec_load, kexec_file_load and vhangup.',
    means: 'A program has rights over the whole machine.',
    errors: denied,
    defines: "numbers['iopl'] = (172, 9999); numbers['ioperm'] = (173, 9999)",
    tries: {
      iopl: "call('iopl', 4)",
      ioperm: "call('ioperm', 0x1fffff, 1, 1)",
      reboot: "call('reboot', 0, 0, 0, None)",
      kexec_load: "call('kexec_load', 0, 99999, None, 0xff)",
      kexec_file_load: "call('kexec_file_load', -1, -1, 0, None, 0xff)",
      vhangup: "forked(lambda: (os.setsid(), call('vhangup')))",
    },
    controls: { 'the load': 'os.getloadavg()' },
    needs: ['filters-syscalls'],
  },
  {
    id: 'wide-netlink',
    threats: 'K-18 N-37',
    name: 'netlink talks of addresses and of nothing else',
    does: 'Opens netlink sockets of audit, device events, netfilter, ipsec, connector and others.',
    means: 'Parts of the kernel that only administrators use are open to programs.',
    errors: [...denied, 'EPROTONOSUPPORT', 'ESOCKTNOSUPPORT', 'EAFNOSUPPORT'],
    tries: Object.fromEntries(Object.entries(wideNetlink).map(([kind, number]) => [kind, `socket.socket(16, 3, ${number}).close()`])),
    controls: { 'an internet socket': 'socket.socket().close()' },
    needs: ['filters-syscalls'],
  },
  {
    id: 'raw-sockets',
    threats: 'K-19 N-02',
    name: 'no raw or packet socket can be had',
    does: 'Opens raw sockets of ICMP, TCP and IP, of IPv6, and packet sockets.',
    means: 'A program can forge and read packets.',
    errors: [...denied, 'EPROTONOSUPPORT', 'ESOCKTNOSUPPORT', 'EAFNOSUPPORT'],
    tries: {
      ICMP: 'socket.socket(2, 3, 1).close()',
      TCP: 'socket.socket(2, 3, 6).close()',
      IP: 'socket.socket(2, 3, 255).close()',
      ICMPv6: 'socket.socket(10, 3, 58).close()',
      packet: 'socket.socket(17, 3, 0).close()',
      'cooked packet': 'socket.socket(17, 2, 0).close()',
    },
    controls: { stream: 'socket.socket().close()', datagram: 'socket.socket(2, 2).close()' },
  },
  {
    id: 'terminal-controls',
    threats: 'K-21',
    name: 'a terminal takes no console command and no other line discipline',
    does: 'Calls TIOCLINUX, TIOCSETD, KDSETMODE and TIOCCONS on a terminal of its own.',
    means: 'A terminal leads to the console of the host, or makes the kernel load a module.',
    errors: [...denied, 'ENOTTY'],
    defines: `def on_terminal(request, value):
    a, b = os.openpty()
    try: return call('ioctl', b, request, value)
    finally: os.close(a); os.close(b)`,
    tries: {
      TIOCLINUX: "on_terminal(0x541c, b'\\x03')",
      'TIOCLINUX with high bits': "on_terminal(0x10000541c, b'\\x03')",
      TIOCSTI: "on_terminal(0x5412, b'x')",
      'TIOCSTI with high bits': "on_terminal(0xffffffff00005412 - (1 << 64), b'x')",
      KDSETMODE: 'on_terminal(0x4b3a, 0)',
    },
    controls: { 'its size': 'on_terminal(0x5413, ctypes.create_string_buffer(8))' },
    needs: ['filters-syscalls'],
  },
  {
    id: 'process-controls',
    threats: 'K-23 K-24',
    name: 'prctl gives no right back: not of capabilities, nor of memory layout',
    does: 'Raises ambient capabilities, sets securebits and the memory map, and takes no_new_privs back.',
    means: 'A program can give itself rights that were taken away.',
    errors: [...denied, 'EINVAL'],
    defines: `def prctl(*a):
    ctypes.set_errno(0)
    if libc.prctl(*[ctypes.c_long(v) for v in a]) == -1: raise OSError(ctypes.get_errno(), 'prctl')`,
    tries: {
      ambient: 'prctl(47, 2, 21, 0, 0)',
      securebits: 'prctl(28, 0x2f, 0, 0, 0)',
      'back to new privileges': 'prctl(38, 0, 0, 0, 0)',
      'strict off': 'prctl(22, 0, 0, 0, 0)',
    },
    controls: { 'its name': "libc.prctl(15, b'guest', 0, 0, 0)" },
  },
  {
    id: 'files-without-names',
    threats: 'K-26',
    name: 'a program that is executed from memory is filtered as any is',
    does: 'Executes a script from a memfd that calls unshare and reads its own status.',
    means: 'What is executed from memory escapes the filter.',
    defines: `def from_memory(code):
    handle = os.memfd_create('gbx', 0)
    with open('/usr/bin/env', 'rb') as source: os.write(handle, source.read())
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(w, 1); os.set_inheritable(handle, True)
        try: os.execve('/proc/self/fd/%d' % handle, ['env', '/usr/bin/python3', '-I', '-S', '-c', code], {})
        except OSError as e: os.write(1, errno.errorcode[e.errno].encode())
        os._exit(0)
    os.close(w); said = b''
    while True:
        part = os.read(r, 4096)
        if not part: break
        said += part
    os.waitpid(pid, 0); os.close(handle); os.close(r); return said.decode().strip()`,
    tries: {
      'no filter': `found(from_memory("print(dict(l.split(':', 1) for l in open('/proc/self/status'))['Seccomp'].strip())") == '0')`,
      'new privileges': `found(from_memory("import ctypes; print(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))") == '0')`,
    },
    controls: { 'it runs, or is refused': `found(from_memory("print('ran')") in ('ran', 'EACCES', 'EPERM'))` },
    needs: ['filters-syscalls'],
  },
  {
    id: 'shared-memory-of-the-host',
    threats: 'K-28 M-04',
    name: "shared memory, queues and semaphores of the host's are not there",
    does: 'Seeks a segment of System V that was planted on the host, by key and by number, and lists what there is.',
    means: 'The namespace of IPC is not its own.',
    errors: [...denied, 'ENOENT', 'EINVAL', 'EIDRM'],
    tries: ({ canaries }) => ({
      ...(canaries.sharedMemory && { 'by key': `call('shmget', ${canaries.sharedMemory.key}, 0, 0)` }),
      segments: "found(open('/proc/sysvipc/shm').read().splitlines()[1:]) if os.path.exists('/proc/sysvipc/shm') else found(False)",
      queues: "found(open('/proc/sysvipc/msg').read().splitlines()[1:]) if os.path.exists('/proc/sysvipc/msg') else found(False)",
    }),
    controls: { 'memory of its own': "found(__import__('mmap').mmap(-1, 4096))" },
  },
  {
    id: 'message-queues',
    threats: 'K-30',
    name: 'the file system of POSIX queues, which shows all that there are, cannot be mounted',
    does: 'Mounts mqueue, in mount namespaces of its own, and opens a queue that it did not make.',
    means: 'Queues of others can be listed and read.',
    errors: [...denied, 'ENOENT'],
    tries: { mount: "mounted(b'mqueue')", 'a queue': "os.close(call('mq_open', b'gbx-no-such-queue', 0, 0, None))" },
    controls: { memory: "__import__('mmap').mmap(-1, 4096)" },
  },
  {
    id: 'old-calls',
    threats: 'K-33',
    name: 'calls that only old programs use are refused',
    does: 'Calls modify_ldt, uselib, sysfs, ustat, _sysctl, lookup_dcookie and nfsservctl.',
    means: 'Rarely walked parts of the kernel are open to programs.',
    errors: denied,
    defines: "numbers.update({'modify_ldt': (154, 9999), 'uselib': (134, 9999), 'sysfs': (139, 9999), 'ustat': (136, 9999), '_sysctl': (156, 9999)})",
    tries: {
      modify_ldt: "call('modify_ldt', 9, None, 0)",
      uselib: "call('uselib', None)",
      sysfs: "call('sysfs', 99, 0, 0)",
      ustat: "call('ustat', 0, None)",
      _sysctl: "call('_sysctl', None)",
      lookup_dcookie: "call('lookup_dcookie', 0, None, 0)",
      nfsservctl: "call('nfsservctl', 0, None, None)",
    },
    controls: { getpid: "call('getpid')" },
    needs: ['filters-syscalls'],
  },
  {
    id: 'harmless-calls',
    threats: 'K-34 K-38',
    name: 'what programs need of the kernel works: threads, processes, epoll, locks, membarrier',
    does: 'Starts threads and processes, waits by epoll, locks between processes, and calls membarrier.',
    means: 'The control beside the denials does not work: nothing can be said of them.',
    tries: {},
    controls: {
      threads: "[(t.start(), t.join()) for t in [__import__('threading').Thread(target=len, args=('x',)) for _ in range(8)]]",
      processes: "found(__import__('subprocess').run(['/bin/echo', 'x'], capture_output=True).stdout == b'x\\n')",
      epoll: "(lambda p, e: (e.register(p[0], 1), os.write(p[1], b'x'), found(e.poll(1))))(os.pipe(), __import__('select').epoll())",
      membarrier: "tried(lambda: call('membarrier', 0, 0, 0), ['ENOSYS'])",
    },
  },
  {
    id: 'kernel-log',
    threats: 'K-36 F-23',
    name: "the kernel's log cannot be read",
    does: 'Calls syslog to read, to read all and for its size, and opens /dev/kmsg and /proc/kmsg.',
    means: 'What the kernel says of the host, addresses with it, is there for programs.',
    errors: [...denied, 'ENOENT'],
    tries: {
      'read all': "call('syslog', 3, ctypes.create_string_buffer(64), 64)",
      size: "call('syslog', 10, None, 0)",
      '/dev/kmsg': "os.close(os.open('/dev/kmsg', os.O_RDONLY))",
      '/proc/kmsg': "os.close(os.open('/proc/kmsg', os.O_RDONLY | os.O_NONBLOCK))",
    },
    controls: { 'the version': "found(read('/proc/version'))" },
    needs: ['filters-syscalls'],
  },
  {
    id: 'own-kernel',
    threats: 'K-35',
    name: "the kernel that answers is not the host's",
    does: "Compares what it is told of its kernel's version and log with what a sandbox kernel says.",
    means: "Programs run on the host's kernel although another was promised.",
    tries: { version: "found(b'gVisor' not in read('/proc/version') and b'Linux version 4.4.0' not in read('/proc/version'), read('/proc/version'))" },
    controls: { version: "found(read('/proc/version'))" },
    needs: ['own-kernel'],
  },
]

export const machineContainment = assaultCases('kernel', assaults)
