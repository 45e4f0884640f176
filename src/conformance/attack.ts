import { ensure, ensureSame } from './check.js'
import { askPython, randomName, withSandbox } from './guest.js'
import type { Case, HostView, Need, Subject, SubjectSandbox } from './subject.js'

/**
 * An attack is a set of Python expressions evaluated inside a cell. A try that raises was denied; one that gives a value
 * got through. The controls beside it use the same means on what is allowed and must get through, so that a denial is
 * never the sign of a broken script.
 *
 * Every expression is harmless where it succeeds: it opens, looks, or undoes what it did, mounts only in a mount namespace of
 * its own, and touches pid 1 and foreign processes only where the process namespace is not the host's.
 */
export interface Attack {
  readonly id: string
  readonly name: string
  readonly needs?: readonly Need[]
  readonly user?: 'user' | 'root'
  readonly tries: Expressions
  readonly controls: Expressions
  /** Python that defines what the expressions use beside the prelude. */
  readonly defines?: string
  /** Only where denials are errors by number: the ones that count as such. */
  readonly errors?: readonly string[]
  /** What the host must look like afterwards. */
  readonly afterwards?: (host: HostView) => Promise<void>
}

type Expressions = Readonly<Record<string, string>> | ((host: HostView) => Readonly<Record<string, string>>)

interface Attempt {
  readonly through: boolean
  readonly detail: string
}

interface Attempts {
  readonly tries: Readonly<Record<string, Attempt>>
  readonly controls: Readonly<Record<string, Attempt>>
}

const prelude = `
import ctypes, errno, json, os, socket, struct, sys
facts = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
x64 = os.uname().machine == 'x86_64'
numbers = {'clone': (56, 220), 'ptrace': (101, 117), 'mount': (165, 40), 'umount2': (166, 39), 'sethostname': (170, 161), 'setns': (308, 268), 'unshare': (272, 97),
  'add_key': (248, 217), 'keyctl': (250, 219), 'request_key': (249, 218), 'perf_event_open': (298, 241), 'process_vm_readv': (310, 270), 'kcmp': (312, 272), 'bpf': (321, 280),
  'userfaultfd': (323, 282), 'open_tree': (428, 428), 'fsopen': (430, 430), 'io_uring_setup': (425, 425), 'pidfd_open': (434, 434), 'pidfd_getfd': (438, 438), 'clone3': (435, 435),
  'open_by_handle_at': (304, 265), 'name_to_handle_at': (303, 264), 'fanotify_init': (300, 262), 'move_mount': (429, 429), 'fsmount': (432, 432), 'fspick': (433, 433), 'pivot_root': (155, 41),
  'swapon': (167, 224), 'swapoff': (168, 225), 'reboot': (169, 142), 'acct': (163, 89), 'quotactl': (179, 60), 'settimeofday': (164, 170), 'clock_settime': (227, 112), 'adjtimex': (159, 171),
  'clock_adjtime': (305, 266), 'setdomainname': (171, 162), 'init_module': (175, 105), 'finit_module': (313, 273), 'delete_module': (176, 106), 'kexec_load': (246, 104), 'kexec_file_load': (320, 294),
  'lookup_dcookie': (212, 18), 'vhangup': (153, 58), 'nfsservctl': (180, 42), 'move_pages': (279, 239), 'migrate_pages': (256, 238), 'mbind': (237, 235), 'set_mempolicy': (238, 237), 'process_madvise': (440, 440),
  'process_mrelease': (448, 448), 'process_vm_writev': (311, 271), 'memfd_create': (319, 279), 'memfd_secret': (447, 447), 'rseq': (334, 293), 'membarrier': (324, 283), 'seccomp': (317, 277), 'io_uring_enter': (426, 426),
  'io_uring_register': (427, 427), 'shmget': (29, 194), 'msgget': (68, 186), 'semget': (64, 190), 'mq_open': (240, 180), 'renameat2': (316, 276), 'sched_setattr': (314, 274), 'ioprio_set': (251, 30), 'quotactl_fd': (443, 443),
  'sched_setscheduler': (144, 119), 'setpriority': (141, 140), 'mlockall': (151, 230), 'pkey_alloc': (330, 289), 'prlimit64': (302, 261), 'statmount': (457, 457), 'listmount': (458, 458), 'capset': (126, 91), 'syslog': (103, 116), 'personality': (135, 92), 'getpid': (39, 172), 'ioctl': (16, 29), 'chroot': (161, 51), 'mount_setattr': (442, 442)}
def call(name, *args):
    ctypes.set_errno(0)
    values = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = libc.syscall(ctypes.c_long(numbers[name][0 if x64 else 1]), *values)
    if result == -1: raise OSError(ctypes.get_errno(), name)
    return result
def read(path, size=4096):
    with open(path, 'rb') as f: return f.read(size)
def create(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)); os.unlink(path); return path
def write_open(path):
    os.close(os.open(path, os.O_WRONLY)); return path
def put(path, content):
    handle = os.open(path, os.O_WRONLY)
    try: return os.write(handle, content)
    finally: os.close(handle)
def raise_limit(by):
    import resource
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try: resource.setrlimit(resource.RLIMIT_NOFILE, (hard + by, hard + by))
    except ValueError: raise PermissionError(errno.EPERM, 'limit')
def found(is_found, what='found'):
    if not is_found: raise FileNotFoundError(errno.ENOENT, 'not found')
    return what
def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(2); s.connect(address); return 'connected'
def serve(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.bind(address); s.listen(1)
        with socket.socket(family, socket.SOCK_STREAM) as c:
            c.settimeout(2); c.connect(s.getsockname()); return 'connected to itself'
def interface(request, value=bytes(24)):
    import fcntl
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s: return fcntl.ioctl(s, request, b'lo'.ljust(16, b'\\0') + value[-24:])
def pids(): return [p for p in os.listdir('/proc') if p.isdigit()]
def quietly(path):
    try: return read(path)
    except OSError: return b''
def status(): return dict((l.split(':', 1)[0], l.split(':', 1)[1].strip()) for l in open('/proc/self/status'))
def peek(pid):
    here = ctypes.create_string_buffer(8)
    return call('process_vm_readv', pid, struct.pack('PN', ctypes.addressof(here), 8), 1, struct.pack('PN', 0x400000, 8), 1, 0)
def forked(act):
    r, w = os.pipe()
    if os.fork() == 0:
        try: act(); code = 0
        except OSError as e: code = e.errno
        except BaseException: code = -1
        os.write(w, struct.pack('<i', code)); os._exit(0)
    code = struct.unpack('<i', os.read(r, 4))[0]; os.wait()
    if code < 0: raise RuntimeError('what was forked broke')
    if code: raise OSError(code, 'forked')
    return 'done'
def type_into_own_terminal():
    import fcntl
    os.setsid(); end = os.openpty()[1]
    fcntl.ioctl(end, 0x540e, 0); fcntl.ioctl(end, 0x5412, b'x')
def tried(act, lacks=None):
    try: act()
    except OSError as e:
        if lacks and errno.errorcode.get(e.errno) not in lacks: raise
def apart(act):
    def inside():
        tried(lambda: call('unshare', 0x00020000)); tried(lambda: call('mount', b'none', b'/', None, 0x44000, None)); act()
    return forked(inside)
def mounted(kind, source=b'none'):
    import tempfile
    place = tempfile.mkdtemp()
    try: return apart(lambda: call('mount', source, place.encode(), kind, 4096 if kind == b'bind' else 0, None))
    finally: os.rmdir(place)
def mounts():
    out = []
    for line in open('/proc/self/mountinfo', encoding='latin1'):
        left, right = line.rstrip().split(' - ', 1)
        fields = left.split(' ')
        out.append((fields[4], set(fields[5].split(',')), right.split(' ')[0], right))
    return out
at_home = os.readlink('/proc/self/ns/pid') != facts['pidNamespace']
def first(act): return act() if at_home else "not tried: pid 1 is the host's"
def environments(): return pids() if at_home else [str(facts['canaryPid'])]
def attempt(expression):
    try: return {'through': True, 'detail': repr(eval(expression))[:160]}
    except OSError as e: return {'through': False, 'detail': errno.errorcode.get(e.errno, type(e).__name__)}
    except Exception as e: return {'through': False, 'detail': type(e).__name__ + ': ' + str(e)[:120]}
os.mkdir(facts['folder']); os.chdir(facts['folder'])
print(json.dumps({'controls': {k: attempt(v) for k, v in facts['controls'].items()}, 'tries': {k: attempt(v) for k, v in facts['tries'].items()}}))`

export function attackCase(attack: Attack): Case {
  return { id: `isolation/${attack.id}`, denial: true, ...attackOf(attack) }
}

/** All but what it is called and counts as. */
export function attackOf(attack: Omit<Attack, 'id'>): Pick<Case, 'name' | 'needs' | 'shares' | 'run'> & { readonly needs: readonly Need[] } {
  return {
    name: attack.name,
    needs: ['isolates', ...(attack.needs ?? []), ...(attack.user === 'root' ? (['user:root'] as const) : [])],
    shares: true,
    run: (subject) => withSandbox(subject, (sandbox) => carryOut(attack, subject, sandbox)),
  }
}

/** What is particular to an attack comes before it is carried out. */
function scriptOf({ defines = '' }: Pick<Attack, 'defines'>): string {
  const at = prelude.indexOf('os.mkdir(facts')
  return `${prelude.slice(0, at)}${defines}\n${prelude.slice(at)}`
}

async function carryOut(attack: Omit<Attack, 'id'>, subject: Subject, sandbox: SubjectSandbox): Promise<string> {
  const { host } = subject
  const facts = {
    tries: expressionsOf(attack.tries, host),
    controls: expressionsOf(attack.controls, host),
    pidNamespace: host.namespaces.pid,
    canaryPid: host.canaries.process.pid,
    folder: randomName(),
  }
  const { tries, controls } = await askPython<Attempts>(sandbox, scriptOf(attack), { args: [JSON.stringify(facts)], user: attack.user ?? 'user' })
  const broken = Object.entries(controls).filter(([, { through }]) => !through)
  ensureSame(Object.fromEntries(broken), {}, 'the controls that did not get through')
  const breaches = Object.entries(tries).filter(([, attempt]) => attempt.through || !isDenial(attempt.detail, attack.errors))
  ensure(breaches.length === 0, 'every try must be denied', Object.fromEntries(breaches))
  await attack.afterwards?.(host)
  return Object.entries(tries)
    .map(([label, { detail }]) => `${label}: ${detail}`)
    .join(', ')
}

/** An error of the script itself is no denial. */
function isDenial(detail: string, errors: readonly string[] | undefined): boolean {
  return errors ? errors.includes(detail) : /^E[A-Z0-9]+$/.test(detail) || detail === 'TimeoutError'
}

function expressionsOf(expressions: Expressions, host: HostView): Readonly<Record<string, string>> {
  return typeof expressions === 'function' ? expressions(host) : expressions
}

/** A text as a Python literal. */
export function literal(value: string): string {
  return JSON.stringify(value)
}
