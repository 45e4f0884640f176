import { type Assault, assaultCases, denied } from './assault.js'

const assaults: readonly Assault[] = [
  {
    id: 'priorities',
    threats: 'P-03',
    name: 'no program can take precedence over those of the host',
    does: 'Asks for a negative nice value, for real-time and deadline scheduling, and for real-time reads.',
    means: 'One program can keep others from the processor, whatever its share is.',
    errors: denied,
    tries: {
      nice: "forked(lambda: call('setpriority', 0, 0, -20))",
      fifo: "forked(lambda: call('sched_setscheduler', 0, 1, struct.pack('i', 50)))",
      deadline: "forked(lambda: call('sched_setattr', 0, struct.pack('<IIQiIQQQ', 48, 6, 0, 0, 0, 10**7, 10**8, 10**8), 0))",
      'real-time reads': "forked(lambda: call('ioprio_set', 1, 0, (1 << 13) | 0))",
    },
    controls: { 'more modesty': "forked(lambda: call('setpriority', 0, 0, 5))" },
    needs: ['shared-kernel'],
  },
  {
    id: 'signals-out',
    threats: 'P-06',
    name: 'signals reach nobody outside',
    does: "Signals everything it can and the number that a process of the host's has.",
    means: 'A program can end processes of the host.',
    errors: [...denied, 'ESRCH', 'ENOENT'],
    tries: ({ canaries: { process } }) => ({
      'by number': `found(os.getpid() != ${process.pid} and not os.path.exists('/proc/${process.pid}') and False) if os.path.exists('/proc/${process.pid}') and ${JSON.stringify(process.marker)} not in quietly('/proc/${process.pid}/cmdline').decode('latin1') else os.kill(${process.pid}, 0)`,
      // The kernel takes a signal to the first process of a namespace from within, and drops it: whoever is still here was not heard.
      'the first process': 'first(lambda: (tried(lambda: os.kill(1, 9)), found(not os.path.exists("/proc/1"))))',
      // Where a cell has one id, whoever watches a program in it has that id too and can be killed, and the run is then told as killed: nobody outside is reached.
      'its parent':
        'found(False) if is_watched_by_its_own_id() else first(lambda: (tried(lambda: os.kill(os.getppid(), 9)), found(os.getppid() != facts_parent)))',
    }),
    defines: `facts_parent = os.getppid()
def is_watched_by_its_own_id():
    with open('/proc/self/uid_map') as lines: ids = [line.split() for line in lines]
    return len(ids) == 1 and ids[0][2] == '1' and os.stat('/proc/%d' % facts_parent).st_uid == os.getuid()`,
    controls: { 'a child': '(lambda pid: (os._exit(0) if pid == 0 else (os.kill(pid, 0), os.waitpid(pid, 0))))(os.fork())' },
  },
  {
    id: 'limits-of-others',
    threats: 'P-21 P-43',
    name: 'limits can be raised of no process, neither its own nor another',
    does: 'Raises its hard limits of processes, memory, files and core dumps, and those of the first process.',
    means: 'A program can take away its own limits.',
    errors: [...denied, 'ESRCH', 'EINVAL'],
    defines: `def raised(which, pid=0):
    old = ctypes.create_string_buffer(16); call('prlimit64', pid, which, None, old)
    hard = struct.unpack('<QQ', old.raw)[1]
    if hard == 2**64 - 1: raise PermissionError(errno.EPERM, 'no limit to raise')
    return call('prlimit64', pid, which, struct.pack('<QQ', hard, hard + 1), None)`,
    tries: {
      processes: 'forked(lambda: raised(6))',
      files: 'forked(lambda: raised(7))',
      core: 'forked(lambda: raised(4))',
      memlock: 'forked(lambda: raised(8))',
      'of the first process': "first(lambda: call('prlimit64', 1, 7, struct.pack('<QQ', 64, 64), None))",
    },
    controls: { 'a lower one': 'forked(lambda: raise_limit(-1))' },
  },
  {
    id: 'pinned-memory',
    threats: 'P-36',
    name: 'memory can be pinned only within its limit',
    does: 'Locks a gigabyte of memory into place.',
    means: 'A program can take memory that the kernel cannot get back.',
    errors: ['ENOMEM', 'EPERM', 'EAGAIN', 'ENOSYS'],
    defines: `def pinned(size):
    import mmap
    m = mmap.mmap(-1, size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(m))
    ctypes.set_errno(0)
    if libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(size)) == -1: raise OSError(ctypes.get_errno(), 'mlock')
    return size`,
    tries: { 'a gigabyte': 'pinned(1 << 30)' },
    controls: { 'memory that is not': "len(__import__('mmap').mmap(-1, 1 << 20))" },
    needs: ['limit:memory', 'shared-kernel'],
  },
  {
    id: 'watchers',
    threats: 'P-39',
    name: "watchers of files end at a number of the cell's own",
    does: 'Makes ten thousand inotify watchers.',
    means: "A program can use up what the machine's user has of them.",
    errors: ['EMFILE', 'ENOMEM', 'ENFILE', 'ENOSPC'],
    defines: `def watchers(count):
    made = []
    try:
        for _ in range(count):
            ctypes.set_errno(0); handle = libc.inotify_init()
            if handle < 0: raise OSError(ctypes.get_errno(), 'inotify')
            made.append(handle)
    finally: [os.close(h) for h in made]
    return count`,
    tries: { 'ten thousand': 'watchers(10000)' },
    controls: { ten: 'watchers(10)' },
  },
  {
    id: 'clean-start',
    threats: 'P-30 P-33',
    name: 'a program begins with nothing of whoever started it: no timers, no masks, no preloaded code',
    does: 'Looks for blocked and ignored signals, timers, variables of loaders and libraries that nobody asked for.',
    means: 'What is in the engine steers programs in the cell.',
    tries: {
      blocked: "found(int(status()['SigBlk'], 16), status()['SigBlk'])",
      ignored: "found(int(status()['SigIgn'], 16) & ~((1 << 12) | (1 << 24)), status()['SigIgn'])",
      timers: "found(__import__('signal').getitimer(0)[0] > 0)",
      preloaded: "found([l for l in open('/proc/self/maps') if '/workspace' in l or '/tmp/' in l])",
      loaders: "found([n for n in os.environ if n.startswith(('LD_', 'PYTHON', 'NODE_', 'GLIBC_'))])",
    },
    // A kernel of its own need not tell of signals.
    needs: ['shared-kernel'],
    controls: { 'its status': "found('SigBlk' in status())" },
  },
  {
    id: 'dumps',
    threats: 'P-35',
    name: 'no crash writes a core dump',
    does: 'Reads its limit of core dumps, raises it, and crashes.',
    means: 'A crash writes its memory to a disk of the host.',
    tries: {
      limit: "found(__import__('resource').getrlimit(4)[1] != 0)",
      dump: '(lambda pid: os.kill(os.getpid(), 11) if pid == 0 else found(os.WCOREDUMP(os.waitpid(pid, 0)[1])))(os.fork())',
    },
    controls: { 'its limits': "__import__('resource').getrlimit(7)" },
  },
  {
    id: 'other-users',
    threats: 'P-09 K-23',
    name: 'a program cannot become another user',
    does: 'Sets its ids and groups to those of others, and executes set-user-id programs.',
    means: 'A program can take on the rights of another user.',
    errors: [...denied, 'EINVAL'],
    tries: {
      uid: 'forked(lambda: os.setuid(4711))',
      gid: 'forked(lambda: os.setgid(4711))',
      groups: 'forked(lambda: os.setgroups([0, 4711]))',
      'the file system id': 'forked(lambda: (os.setresuid(-1, 4712, -1)))',
    },
    controls: { 'its own': 'os.setuid(os.getuid())' },
  },
]

export const processContainment = assaultCases('processes', assaults)
