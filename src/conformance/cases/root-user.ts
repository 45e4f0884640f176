import type { Attack } from '../attack.js'
import { attackCase, literal } from '../attack.js'
import { ensure, ensureExited, ensureRejects, ensureSame } from '../check.js'
import { askPython, python, withSandbox } from '../guest.js'
import { ensureLeavesNothing } from '../leftovers.js'
import type { Case } from '../subject.js'

/** Root of a cell rules over its own files and ports, and over nothing of the kernel. */
const documentedCapabilities: Readonly<Record<number, string>> = { 0: 'CHOWN', 1: 'DAC_OVERRIDE', 3: 'FOWNER', 4: 'FSETID', 10: 'NET_BIND_SERVICE' }

/** A kernel that does not tell of new privileges in there can be asked; one that tells of no ambient set has none. */
const readStatus = `import ctypes, json
status = dict((l.split(':', 1)[0], l.split(':', 1)[1].strip()) for l in open('/proc/self/status'))
status.setdefault('NoNewPrivs', str(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0)))
print(json.dumps(status))`

const attacks: readonly Attack[] = [
  {
    id: 'root-writes',
    name: 'root of a cell writes nowhere outside what is writable, and not to a file of the host',
    user: 'root',
    tries: ({ canaries }) => ({
      '/usr': "create('/usr/gbx-root')",
      '/etc': "create('/etc/gbx-root')",
      '/': "create('/gbx-root')",
      '/dev': "create('/dev/gbx-root')",
      '/etc/passwd': "write_open('/etc/passwd')",
      'the canary': `read(${literal(canaries.file.path)})`,
      core_pattern: "write_open('/proc/sys/kernel/core_pattern')",
      'a device': "[os.mknod('node', 0o20600, os.makedev(1, 3)), os.unlink('node')]",
      shadow: "read('/etc/shadow')",
    }),
    controls: { 'its home': "create('/root/gbx-own')", 'the workspace': "create('own')" },
  },
  {
    id: 'root-kernel',
    name: 'root of a cell cannot mount, make namespaces, rename the machine or load anything',
    user: 'root',
    errors: ['EPERM', 'EACCES', 'ENOSYS'],
    tries: {
      mount: "mounted(b'tmpfs')",
      remount: "apart(lambda: call('mount', b'none', b'/', None, 4096 | 32, None))",
      'umount /proc': "apart(lambda: call('umount2', b'/proc', 2))",
      hostname: "(lambda n: call('sethostname', n, len(n)))(os.uname().nodename.encode())",
      'raw socket': 'socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)',
      open_by_handle: "os.close(call('open_by_handle_at', os.open('/', os.O_RDONLY), struct.pack('<IiQ', 8, 1, 2), 0))",
    },
    controls: { 'an owner': "[open('own', 'w').close(), os.chown('own', 1000, 1000)]", 'a low port': "socket.socket().bind(('127.0.0.1', 80))" },
  },
  {
    id: 'root-warden',
    name: 'root of a cell can neither signal, trace nor read the first process',
    user: 'root',
    errors: ['EPERM', 'EACCES', 'ENOSYS', 'ENOENT'],
    tries: {
      mem: "first(lambda: os.close(os.open('/proc/1/mem', os.O_RDONLY)))",
      environ: "first(lambda: read('/proc/1/environ'))",
      root: "first(lambda: os.listdir('/proc/1/root'))",
      'a descriptor': "first(lambda: os.readlink('/proc/1/fd/0'))",
      'its channel': "first(lambda: os.close(os.open('/proc/1/fd/1', os.O_WRONLY)))",
      seize: "first(lambda: call('ptrace', 0x4206, 1, 0, 0))",
      read: 'first(lambda: peek(1))',
    },
    controls: { 'its own': "os.listdir('/proc/self/fd')" },
  },
]

function capabilitiesIn(mask: string | undefined): number[] {
  const bits = BigInt(`0x${mask ?? '0'}`)
  return Array.from({ length: 64 }, (_, number) => number).filter((number) => (bits >> BigInt(number)) & 1n)
}

export const rootUserCases: readonly Case[] = [
  ...attacks.map(attackCase),
  {
    id: 'root/identity',
    name: 'root has uid 0, its own home, no new privileges, and exactly the documented capabilities',
    needs: ['isolates', 'user:root'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const status = await askPython<Record<string, string>>(sandbox, readStatus, { user: 'root' })
        ensureSame(status.Uid?.split(/\s+/), ['0', '0', '0', '0'], 'its uids')
        const held = capabilitiesIn(status.CapEff)
        ensureSame(held, Object.keys(documentedCapabilities).map(Number), 'its capabilities')
        ensureSame([capabilitiesIn(status.CapPrm), capabilitiesIn(status.CapBnd)], [held, held], 'the permitted and bounding sets')
        ensureSame([status.CapInh, status.CapAmb].map(capabilitiesIn), [[], []], 'the inheritable and ambient sets')
        ensureSame([status.NoNewPrivs, status.Seccomp], ['1', subject.probe.filtersSyscalls ? '2' : '0'], 'NoNewPrivs and Seccomp')
        ensureSame(ensureExited(await sandbox.run(['sh', '-c', 'cd && pwd'], { user: 'root' })), '/root\n', 'its home')
        return `uid 0 with ${Object.values(documentedCapabilities).join(' ')}`
      }),
  },
  {
    id: 'root/warden-survives',
    name: 'root of a cell that signals everything does not end the cell',
    needs: ['isolates', 'user:root'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const script = `import os, sys
if os.readlink('/proc/self/ns/pid') == sys.argv[1]: sys.exit(99)
for n in range(1, 65):
    if n in (32, 33): continue
    for target in (1, os.getppid()):
        try: os.kill(target, n)
        except OSError: pass`
        const { outcome } = await sandbox.run(python(script, subject.host.namespaces.pid ?? ''), { user: 'root' })
        ensure(outcome.kind !== 'exited' || outcome.code !== 99, 'the cell must have a process namespace of its own', outcome)
        await sandbox.run(['sh', '-c', 'kill -9 -1'], { user: 'root' })
        ensureSame(ensureExited(await sandbox.run(['echo', 'alive'])), 'alive\n', 'the next run')
        return `${outcome.kind}, then alive`
      }),
  },
  {
    id: 'root/refused',
    name: 'root that cannot be had is refused, for a sandbox and for a run, and nothing starts',
    needs: ['engine', 'no-user:root'],
    run: async (subject) => {
      let message = ''
      await ensureLeavesNothing(subject, async () => {
        message = (await ensureRejects(subject.open({ user: 'root' }), ['unsupported'])).message
      })
      await withSandbox(subject, (sandbox) => ensureRejects(sandbox.run(['id'], { user: 'root' }), ['unsupported']))
      ensure(message.includes('root'), 'the message must name the user', message)
      return message
    },
  },
]
