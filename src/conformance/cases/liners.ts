/** Runs of one cell, each in a liner of its own: contained as any, and apart from those before it, beside it and after it. */
import { ensure, ensureExited, ensureSame, text } from '../check.js'
import { randomName } from '../guest.js'
import { inLiners } from '../places.js'
import type { Case, Subject, SubjectLined } from '../subject.js'
import { fileIsolationCases } from './isolation-files.js'
import { kernelIsolationCases } from './isolation-kernel.js'
import { networkIsolationCases } from './isolation-network.js'
import { processIsolationCases } from './isolation-processes.js'

async function withLined<T>(subject: Subject, use: (lined: SubjectLined) => Promise<T>): Promise<T> {
  ensure(subject.lined !== undefined, 'what says that it has liners must give them', subject.name)
  const lined = await subject.lined({})
  try {
    return await use(lined)
  } finally {
    await lined.close()
  }
}

/** `-I` is an option, so that it is started; without any it may be a fork of an interpreter that was there. */
const interpreters = { started: ['/usr/bin/python3', '-I', '-c'], forked: ['/usr/bin/python3', '-c'] } as const

const everywhere = `import builtins, ctypes, json, os, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
mark, number = sys.argv[1], int(sys.argv[2])
places = [place for place in ("/workspace", "/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~")) if os.access(place, os.W_OK)]
library = os.path.expanduser("~/.local/lib/python%d.%d/site-packages" % sys.version_info[:2])
def connects(kind, address):
    with socket.socket(kind) as one: return one.connect_ex(address) == 0
def seen():
    found = [place for place in places if os.path.exists(place + "/" + mark)]
    found += ["sitecustomize"] * (os.path.exists(library + "/sitecustomize.py") or hasattr(sys, mark))
    found += ["variable"] * (mark in os.environ) + ["module"] * (mark in sys.modules) + ["name"] * hasattr(builtins, mark) + ["attribute"] * hasattr(json, mark)
    found += ["shared memory"] * (libc.shmget(number, 4096, 0o600) >= 0) + ["queue"] * (libc.msgget(number, 0o600) >= 0)
    found += ["socket"] * connects(socket.AF_UNIX, "\\0" + mark) + ["port"] * connects(socket.AF_INET, ("127.0.0.1", number))
    found += ["process"] * (sum(mark.encode() in open("/proc/%s/cmdline" % pid, "rb").read() for pid in os.listdir("/proc") if pid.isdigit()) > 1)
    found += ["timer"] * (signal.getitimer(signal.ITIMER_REAL)[0] > 0) + ["handler"] * (signal.getsignal(signal.SIGUSR1) != signal.SIG_DFL)
    return found
`

const plant = `${everywhere}
for place in places: open(place + "/" + mark, "w").close()
os.makedirs(library); open(library + "/sitecustomize.py", "w").write("import sys; setattr(sys, %r, 1)" % mark)
os.environ[mark] = "1"; sys.modules[mark] = sys; setattr(builtins, mark, 1); setattr(json, mark, 1)
libc.shmget(number, 4096, 0o1600); libc.msgget(number, 0o1600)
one = socket.socket(socket.AF_UNIX); one.bind("\\0" + mark); one.listen()
two = socket.socket(); two.bind(("127.0.0.1", number)); two.listen()
signal.signal(signal.SIGUSR1, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 40)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: signal.setitimer(signal.ITIMER_REAL, 0); os.close(1); os.close(2); time.sleep(40)
    os._exit(0)
os.wait(); time.sleep(0.1); print(len(places), seen())`

const look = `${everywhere}
print(len(places), seen())`

/** The same at what there is besides files: places that can be written to differ between cells. */
const allSeen = ['sitecustomize', 'variable', 'module', 'name', 'attribute', 'shared memory', 'queue', 'socket', 'port', 'process', 'timer', 'handler']

function planted([how, start]: readonly [string, readonly string[]]): Case {
  return {
    id: `liners/leave-nothing-${how}`,
    name: `files, processes, shared memory, sockets, timers, signals, variables and modules of a run whose Python is ${how} are not there for the next`,
    needs: ['feature:liners'],
    run: (subject) =>
      withLined(subject, async (lined) => {
        const args = [randomName(), '24242']
        const first = ensureExited(await lined.run([...start, plant, ...args]))
        for (const what of allSeen) ensure(first.includes(`'${what}'`), `the run itself must see what it planted: ${what}`, first)
        const next = ensureExited(await lined.run([...start, look, ...args]))
        ensure(/^[1-9]\d* \[\]\n$/.test(next), 'the next must see nothing', next)
        return first.trim()
      }),
  }
}

const atOnce: Case = {
  id: 'liners/apart-at-once',
  name: 'two runs at once see neither the processes nor the files nor the sockets of each other',
  needs: ['feature:liners'],
  run: (subject) =>
    withLined(subject, async (lined) => {
      const script = `import os, socket, sys, time
open("/tmp/" + sys.argv[1], "w").close()
one = socket.socket(socket.AF_UNIX); one.bind("\\0same"); two = socket.socket(); two.bind(("127.0.0.1", 24243)); two.listen()
time.sleep(1)
print(sorted(int(pid) for pid in os.listdir("/proc") if pid.isdigit()), os.listdir("/tmp"))`
      const said = await Promise.all(['left', 'right'].map((name) => lined.run([...interpreters.forked, script, name])))
      ensureSame(
        said.map((each) => ensureExited(each)),
        ["[1, 2] ['left']\n", "[1, 2] ['right']\n"],
        'what each sees',
      )
      return said.map(({ stdout }) => text(stdout).trim()).join(' and ')
    }),
}

const outOfReach: Case = {
  id: 'liners/makers-out-of-reach',
  name: 'whoever makes liners can be neither named, signalled, traced nor read from inside one, and none of its descriptors is there',
  needs: ['feature:liners'],
  run: (subject) =>
    withLined(subject, async (lined) => {
      const script = `import ctypes, errno, json, os, signal
libc = ctypes.CDLL(None, use_errno=True); libc.syscall.restype = ctypes.c_long
x64 = os.uname().machine == "x86_64"
def told(act):
    try: act(); return "through"
    except OSError as error: return errno.errorcode[error.errno]
def call(numbers, *values):
    ctypes.set_errno(0)
    if libc.syscall(ctypes.c_long(numbers[0 if x64 else 1]), *(ctypes.c_long(value) for value in values)) < 0: raise OSError(ctypes.get_errno(), "call")
others = [pid for pid in range(3, 2000) if told(lambda: os.kill(pid, 0)) != "ESRCH"]
own = len([0 for fd in os.listdir("/proc/self/fd") if os.path.lexists("/proc/self/fd/" + fd)])
tries = {"all others": told(lambda: os.kill(-1, signal.SIGKILL)), "memory": told(lambda: open("/proc/1/mem", "rb")), "descriptors": told(lambda: os.listdir("/proc/1/fd")),
  "root": told(lambda: os.listdir("/proc/1/root")), "trace": told(lambda: call((101, 117), 0x4206, 1, 0, 0)), "read": told(lambda: call((310, 270), 1, 0, 0, 0, 0, 0)),
  "enter": told(lambda: call((308, 268), 0, 0)), "user namespace": told(lambda: call((272, 97), 0x10000000)), "mount": told(lambda: call((165, 40), 0, 0, 0, 0, 0)),
  "who ends first": told(lambda: open("/proc/self/oom_score_adj", "w"))}
print(json.dumps({"others": others, "descriptors": own, "tries": tries, "control": [told(lambda: os.kill(os.getpid(), 0)), told(lambda: os.listdir("/proc/self/root"))]}))`
      // One after the other, because the second shows that whoever made the first lives.
      for (const _ of [1, 2]) {
        const told = JSON.parse(ensureExited(await lined.run([...interpreters.forked, script]))) as { tries: Record<string, string> }
        const { tries, ...rest } = told
        ensureSame(rest, { others: [], descriptors: 3, control: ['through', 'through'] }, 'what is there')
        ensureSame(
          Object.entries(tries).filter(([, end]) => end === 'through'),
          [],
          'what got through',
        )
      }
      return 'out of reach'
    }),
}

const forkBomb: Case = {
  id: 'liners/fork-bomb',
  name: 'a fork bomb in one run leaves nothing, and takes nothing from the runs after it',
  needs: ['feature:liners', 'limit:processes'],
  run: (subject) =>
    withLined(subject, async (lined) => {
      const bomb = 'import os, time\nend = time.time() + 1\nwhile time.time() < end:\n  try: os.fork()\n  except OSError: time.sleep(0.05)\nos._exit(3)'
      const { outcome } = await lined.run([...interpreters.forked, bomb])
      const count = 'import os; print([os.fork() and "forked" for _ in range(3)].count("forked")); os._exit(0)'
      const after = await lined.run([...interpreters.forked, 'import os; print(sorted(int(pid) for pid in os.listdir("/proc") if pid.isdigit()))'])
      ensureSame(ensureExited(after), '[1, 2]\n', 'the processes that the next run sees')
      ensure((await lined.run([...interpreters.started, count])).outcome.kind === 'exited', 'the next run must be able to fork', count)
      return `the bomb: ${outcome.kind}`
    }),
}

/** What needs a second run in the same place, or what no liner has. */
const elsewhere = ['isolation/neighbours']

/** The walls of a cell, tried from inside a liner. */
function contained(candidate: Case): Case {
  const { id, name, needs = [], patienceMs } = candidate
  return {
    id: id.replace('isolation/', 'liners/'),
    name: `in a liner: ${name}`,
    needs: [...needs, 'feature:liners'],
    ...(patienceMs && { patienceMs }),
    run: (subject) => candidate.run(inLiners(subject)),
  }
}

const containment = [...fileIsolationCases, ...networkIsolationCases, ...processIsolationCases, ...kernelIsolationCases]

export const linerCases: readonly Case[] = [
  ...Object.entries(interpreters).map(planted),
  atOnce,
  outOfReach,
  forkBomb,
  ...containment.filter(({ id, needs = [] }) => !elsewhere.includes(id) && !needs.includes('user:root')).map(contained),
]
