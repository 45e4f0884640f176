import type { Attack } from '../attack.js'
import { attackCase, literal } from '../attack.js'
import { ensure, ensureExited, ensureSame, text } from '../check.js'
import { askPython, markedSleep, python, randomName, withSandbox } from '../guest.js'
import type { Case, SubjectSandbox } from '../subject.js'

const attacks: readonly Attack[] = [
  {
    id: 'host-processes',
    name: "a guest sees its own processes and none of the host's",
    tries: ({ canaries }) => ({
      'the canary in /proc': `found([p for p in pids() if p != str(os.getpid()) and ${literal(canaries.process.marker)}.encode() in quietly('/proc/%s/cmdline' % p)])`,
      'the canary by signal': `found(${canaries.process.pid} != os.getpid() and os.kill(${canaries.process.pid}, 0) is None and ${literal(canaries.process.marker)}.encode() in quietly('/proc/${canaries.process.pid}/cmdline'))`,
      'more than a handful': 'found(len(pids()) > 8, len(pids()))',
    }),
    controls: { 'its own': "found(str(os.getpid()) in pids() and b'facts' in read('/proc/self/cmdline', 65536))" },
  },
  {
    id: 'host-environment',
    name: "no variable of the engine's environment is to be seen, its own or another process's",
    tries: ({ canaries }) => ({
      'by name': `os.stat('/no/such') if ${literal(canaries.variable.name)} not in os.environ else os.environ[${literal(canaries.variable.name)}]`,
      'in any /proc': `found(any(${literal(canaries.variable.value)}.encode() in quietly('/proc/%s/environ' % p) for p in environments()))`,
      'what steers loaders': "found([n for n in os.environ if n.startswith(('LD_', 'NODE_', 'SSH_', 'npm_', 'GLOVEBOX', 'VITEST'))])",
    }),
    controls: { 'its own': "found('PATH' in os.environ)" },
  },
  {
    id: 'namespaces',
    name: 'the cell has namespaces of its own of every kind',
    tries: ({ namespaces }) =>
      Object.fromEntries(Object.entries(namespaces).map(([kind, name]) => [kind, `found(os.readlink('/proc/self/ns/${kind}') == ${literal(name)})`])),
    controls: { 'readable at all': "os.readlink('/proc/self/ns/pid')" },
  },
  {
    id: 'warden',
    name: 'the first process of the cell can be neither traced, read nor copied from',
    errors: ['EPERM', 'EACCES', 'ENOSYS', 'ENOENT'],
    tries: {
      mem: "first(lambda: os.close(os.open('/proc/1/mem', os.O_RDONLY)))",
      maps: "first(lambda: found(read('/proc/1/maps')))",
      environ: "first(lambda: read('/proc/1/environ'))",
      root: "first(lambda: os.listdir('/proc/1/root'))",
      cwd: "first(lambda: os.readlink('/proc/1/cwd'))",
      exe: "first(lambda: os.readlink('/proc/1/exe'))",
      'a descriptor': "first(lambda: os.readlink('/proc/1/fd/0'))",
      'its channel': "first(lambda: os.close(os.open('/proc/1/fd/1', os.O_WRONLY)))",
      seize: "first(lambda: call('ptrace', 0x4206, 1, 0, 0))",
      process_vm_readv: 'first(lambda: peek(1))',
      pidfd_getfd: "first(lambda: os.close(call('pidfd_getfd', call('pidfd_open', 1, 0), 1, 0)))",
      arguments: "first(lambda: found(b'--' in read('/proc/1/cmdline'), read('/proc/1/cmdline')))",
    },
    controls: { 'its own': "[os.readlink('/proc/self/exe'), os.listdir('/proc/self/fd'), found(read('/proc/self/maps'))]" },
  },
  {
    id: 'capabilities',
    name: 'a guest has no capability and cannot gain one',
    tries: {
      ...Object.fromEntries(['CapInh', 'CapPrm', 'CapEff', 'CapBnd'].map((set) => [set, `found(int(status()['${set}'], 16), status()['${set}'])`])),
      // A kernel that tells of none has no ambient set, and where there is one it is a part of the inheritable.
      CapAmb: "found(int(status().get('CapAmb', status()['CapInh']), 16))",
      capset: "[call('capset', struct.pack('<IiIIIIII', 0x20080522, 0, 0, 0, 0, 0, 0, 0)[:8], struct.pack('<IIIIII', 1 << 21, 1 << 21, 0, 0, 0, 0))]",
      'ambient raise': 'found(libc.prctl(47, 2, 21, 0, 0) == 0)',
      'another uid': 'forked(lambda: os.setresuid(0, 0, 0) if os.getuid() else os.setresuid(4711, 4711, 4711))',
      groups: 'forked(lambda: os.setgroups([4711]))',
    },
    controls: { 'its own status': "found('CapEff' in status())" },
  },
  {
    id: 'no-new-privileges',
    name: 'a guest cannot gain privileges by executing a file',
    tries: {
      NoNewPrivs: "found(status().get('NoNewPrivs', '1') != '1', status().get('NoNewPrivs'))",
      'as it is asked': 'found(libc.prctl(39, 0, 0, 0, 0) != 1)',
    },
    controls: { 'its own status': "found('Uid' in status())", 'an answer': 'found(libc.prctl(39, 0, 0, 0, 0) in (0, 1))' },
  },
  {
    id: 'filter',
    name: 'a guest runs under the filter of system calls',
    needs: ['filters-syscalls'],
    tries: { 'no filter': "found(status()['Seccomp'] != '2', status()['Seccomp'])" },
    controls: { 'its own status': "found('Seccomp' in status())" },
  },
  {
    id: 'cgroup-files',
    name: 'a guest cannot move its own limits',
    tries: {
      'a cgroup to write': "found([p for p, _, names in os.walk('/sys/fs/cgroup') for n in names[:40] if os.access(os.path.join(p, n), os.W_OK)][:3])",
      oom_score_adj: "forked(lambda: put('/proc/self/oom_score_adj', b'-1000'))",
      'hard limit': 'forked(lambda: raise_limit(1))',
    },
    controls: { 'a lower limit': 'forked(lambda: raise_limit(-1))' },
  },
]

/** The descriptor that lists the folder is closed again before the names are looked at. */
const listDescriptors = `import os, json
names = os.listdir('/proc/self/fd')
print(json.dumps({n: os.readlink('/proc/self/fd/' + n) for n in names if os.path.lexists('/proc/self/fd/' + n)}))`

/** Leaves a sign of itself in every place that a second sandbox might share, says so, and waits. */
const dwell = `import os, socket, sys
name = sys.argv[1]
for folder in ('.', '/tmp', '/var/tmp', '/dev/shm'): open(folder + '/' + name, 'w').write(name)
a = socket.socket(socket.AF_UNIX); a.bind('\\0' + name); a.listen(5)
t = socket.socket(); t.bind(('127.0.0.1', 0)); t.listen(5)
print(t.getsockname()[1], flush=True)
sys.stdin.read()
for folder in ('.', '/tmp', '/var/tmp', '/dev/shm'): os.unlink(folder + '/' + name)`

const look = `import json, os, socket, sys
name, port = sys.argv[1], int(sys.argv[2])
def command(pid):
    try: return open('/proc/%s/cmdline' % pid, 'rb').read()
    except OSError: return b''
def reaches(family, address):
    try: socket.socket(family).connect(address); return True
    except OSError: return False
seen = {folder: os.path.exists(folder + '/' + name) for folder in ('.', '/tmp', '/var/tmp', '/dev/shm')}
seen['abstract socket'] = reaches(socket.AF_UNIX, '\\0' + name)
seen['loopback'] = reaches(socket.AF_INET, ('127.0.0.1', port))
seen['process'] = any(name.encode() in command(p) for p in os.listdir('/proc') if p.isdigit() and p != str(os.getpid()))
print(json.dumps(seen))`

const neighbours: Case = {
  id: 'isolation/neighbours',
  name: 'two sandboxes do not see each other: files, processes, sockets, loopback',
  needs: ['isolates'],
  denial: true,
  run: (subject) =>
    withSandbox(subject, (first) =>
      withSandbox(subject, async (second) => {
        const name = randomName()
        const dweller = await first.start(python(dwell, name), { stdin: true })
        const events = dweller.output[Symbol.asyncIterator]()
        const spoken = await events.next()
        ensure(spoken.done !== true, 'the first must say its port', 'it ended')
        const port = text(spoken.value.bytes).trim()
        const watch = (sandbox: SubjectSandbox) => askPython<Record<string, boolean>>(sandbox, look, { args: [name, port] })
        const [own, other] = [await watch(first), await watch(second)]
        await dweller.endInput()
        await events.return?.()
        await dweller.ended.catch(() => undefined)
        ensureSame(Object.values(own).every(Boolean), true, 'that the first sees all of its own')
        ensureSame(
          Object.keys(other).filter((place) => other[place]),
          [],
          'what the second sees of the first',
        )
        return `${Object.keys(own).length} signs seen by the first, none by the second`
      }),
    ),
}

const descriptors: Case = {
  id: 'isolation/descriptors',
  name: 'a program has the descriptors 0, 1 and 2 and no other',
  run: (subject) =>
    withSandbox(subject, async (sandbox) => {
      const seen = await askPython<Record<string, string>>(sandbox, listDescriptors)
      ensureSame(Object.keys(seen).sort(), ['0', '1', '2'], 'the descriptors')
      return Object.values(seen).join(' ')
    }),
}

/** Refuses to begin where pid 1 is the host's: it might listen. */
const signalWarden = `import os, sys
if os.readlink('/proc/self/ns/pid') == sys.argv[1]: sys.exit(99)
for n in range(1, 65):
    if n in (32, 33): continue
    try: os.kill(1, n)
    except PermissionError: pass
    try: os.kill(os.getppid(), n)
    except (PermissionError, ProcessLookupError): pass
`

const wardenSurvives: Case = {
  id: 'isolation/warden-survives',
  name: 'no signal a guest can send ends the cell or forges an ending',
  needs: ['isolates'],
  run: (subject) =>
    withSandbox(subject, async (sandbox) => {
      const { outcome } = await sandbox.run(python(signalWarden, subject.host.namespaces.pid ?? ''))
      ensure(outcome.kind !== 'exited' || outcome.code === 0, 'the program must have been let begin, in a process namespace of its own', outcome)
      const { argv } = markedSleep()
      const everyone = await sandbox.run(['sh', '-c', `${argv.join(' ')} & kill -9 -1`])
      ensureSame(ensureExited(await sandbox.run(['echo', 'alive'])), 'alive\n', 'the next run')
      return `${outcome.kind}, ${everyone.outcome.kind}, then alive`
    }),
}

export const processIsolationCases: readonly Case[] = [...attacks.map(attackCase), neighbours, descriptors, wardenSurvives]
