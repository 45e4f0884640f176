import { ensure, ensureExited, ensureSame } from '../check.js'
import { python } from '../guest.js'
import type { Case } from '../subject.js'
import { withstand } from '../under-attack.js'

const MiB = 2 ** 20
const limitBytes = 64 * MiB
const needs = ['engine', 'isolates', 'limit:memory'] as const

/** Each takes a part of what is too much together, touches it, and holds it until every other has taken its own or has died of it. */
const many = `import os
taken, taking = os.pipe()
over, holding = os.pipe()
pids = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        os.close(holding)
        block = bytearray(b'x') * (24 << 20)
        os.close(taking); os.read(over, 1); os._exit(0)
    pids.append(pid)
os.close(taking); os.read(taken, 1); os.close(holding)
killed = sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -9 for pid in pids)
print(killed)`

/** More of the template's files than fit, read through the page cache. */
const readMuch = `import os
total = 0
for folder, _, names in os.walk('/usr/lib'):
    for name in names:
        path = os.path.join(folder, name)
        if os.path.islink(path) or not os.path.isfile(path): continue
        try:
            with open(path, 'rb', buffering=0) as f:
                while chunk := f.read(1 << 20): total += len(chunk)
        except OSError: pass
        if total > 256 << 20: break
    if total > 256 << 20: break
print(total)`

const keepFile = `import mmap
with open('/workspace/f', 'wb', buffering=0) as f:
    while True: f.write(b'x' * 65536)`

/** Memory that belongs to no address space: a pipe's and a socket's buffers. */
const buffers = `import os, socket, fcntl
held = []
for _ in range(900):
    try:
        a, b = socket.socketpair(); a.setblocking(False)
        a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        held += [a, b]
        while True: a.send(b'x' * 65536)
    except BlockingIOError: pass
    except OSError: break
print('held')`

/** Answers of the kernel that nobody reads. Option 55 tells what waits in a socket; 900 MB are enough to be seen. */
const netlink = `import os, socket, struct
held, kept = 0, []
try:
    while held < 900_000_000 and len(kept) < 3000:
        s = socket.socket(16, socket.SOCK_RAW, 0); kept.append(s); s.setblocking(False)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        before = -1
        while (now := struct.unpack_from('I', s.getsockopt(socket.SOL_SOCKET, 55, 64))[0]) > before:
            before = now
            for _ in range(32): s.send(struct.pack('IHHIIBxHiII', 32, 18, 1, 0, 0, 0, 0, 1, 0, 0))
        held += before
except OSError: pass
print(held)`

/** Datagrams that are never finished, begun in each way that there is. */
const corked = `import resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held, kept, ways = 0, [], [lambda s: s.sendto(b'x' * 60000, 0x8000, ('127.0.0.1', 9))]
ways.append(lambda s: s.sendmsg([b'x' * 60000], [], 0x8000, ('127.0.0.1', 9)))
for level in (17, 136): ways.append(lambda s, level=level: (s.setsockopt(level, 1, 1), s.sendto(b'x' * 60000, ('127.0.0.1', 9))))
for way in ways:
    try:
        for _ in range(900):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); kept.append(s)
            way(s); held += 60000
    except OSError: pass
print(held)`

function unboundedCase(id: string, name: string, code: string): Case {
  return {
    id,
    name,
    needs: [...needs, 'filters-syscalls'],
    run: (subject) =>
      withstand(subject, {
        spec: { limits: { memory: limitBytes, disk: '2m' } },
        command: python(code),
        judge: (result) => {
          if (result.outcome.kind === 'out-of-memory') return 'killed for want of memory'
          const held = Number(ensureExited(result))
          ensure(held <= limitBytes, 'no more than the limit may be held', `${held} bytes`)
          return `held ${held} bytes`
        },
      }),
  }
}

export const memoryAttackCases: readonly Case[] = [
  {
    id: 'attacks/memory-children',
    name: 'children that together take more memory than the limit are killed, their parent tells of it, and so does the usage',
    needs,
    run: (subject) =>
      withstand(subject, {
        spec: { limits: { memory: limitBytes, disk: '2m' } },
        command: python(many),
        judge: (result) => {
          const { outcome, usage } = result
          // Whom the kernel chooses is its business: some of the children, or the parent among them.
          if (outcome.kind === 'out-of-memory') return 'the parent itself was killed for want of memory'
          const killed = Number(ensureExited(result))
          ensure(killed >= 1 && usage.hits.memory !== null && usage.hits.memory >= killed, 'each kill must be counted', { killed, usage })
          ensure(usage.memoryPeakBytes <= limitBytes, 'the peak must stay within the limit', usage)
          return `${killed} children killed`
        },
      }),
  },
  {
    id: 'attacks/memory-disk',
    name: 'files beyond the memory limit, on a disk that would take them, end as out-of-memory',
    needs: [...needs, 'limit:disk'],
    run: (subject) =>
      withstand(subject, {
        spec: { limits: { memory: limitBytes, disk: '512m' } },
        command: python(keepFile),
        judge: ({ outcome }) => {
          ensureSame(outcome, { kind: 'out-of-memory', limitBytes }, 'the outcome')
          return 'out-of-memory'
        },
      }),
  },
  {
    id: 'attacks/memory-page-cache',
    name: 'a program that reads far more files than fit into its memory is not punished for it',
    needs,
    run: (subject) =>
      withstand(subject, {
        spec: { limits: { memory: limitBytes, disk: '2m', cpus: 1 } },
        command: python(readMuch),
        judge: (result) => {
          const bytes = Number(ensureExited(result))
          ensure(result.usage.memoryPeakBytes <= limitBytes, 'the peak must stay within the limit', result.usage)
          return `read ${Math.round(bytes / MiB)} MiB within ${limitBytes / MiB} MiB`
        },
      }),
  },
  {
    id: 'attacks/memory-buffers',
    name: 'buffers of sockets count as memory too',
    needs,
    run: (subject) =>
      withstand(subject, {
        spec: { limits: { memory: limitBytes, disk: '2m' } },
        command: python(buffers),
        judge: ({ outcome, usage }) => {
          ensure(outcome.kind === 'exited' || outcome.kind === 'out-of-memory', 'must end by itself or for want of memory', outcome)
          ensure(usage.memoryPeakBytes <= limitBytes, 'the peak must stay within the limit', usage)
          return `${outcome.kind} at ${Math.round(usage.memoryPeakBytes / MiB)} MiB`
        },
      }),
  },
  unboundedCase('attacks/memory-netlink', 'answers of the kernel that wait in sockets are within the memory limit, or there are no such sockets', netlink),
  unboundedCase('attacks/memory-corked-datagrams', 'datagrams that are begun and never sent are within the memory limit, or cannot be begun', corked),
  {
    id: 'attacks/memory-suicide',
    name: 'a program that kills itself with SIGKILL is signaled, not out of memory',
    needs: ['engine'],
    run: (subject) =>
      withstand(subject, {
        spec: {},
        command: python('import os; os.kill(os.getpid(), 9)'),
        judge: ({ outcome }) => {
          ensureSame(outcome, { kind: 'signaled', signal: 'SIGKILL' }, 'the outcome')
          return 'signaled'
        },
      }),
  },
  {
    id: 'attacks/memory-one-of-two',
    name: 'of two runs in one sandbox only the one that took the memory is out of memory',
    needs,
    run: (subject) =>
      withstand(subject, {
        spec: { limits: { memory: limitBytes, disk: '2m' } },
        command: python('import time; time.sleep(2)'),
        judge: async (slept, sandbox) => {
          ensureExited(slept)
          const quiet = sandbox.run(python('import time; time.sleep(1.5)'))
          const greedy = await sandbox.run(python("block = bytearray(b'x') * (256 << 20)"))
          ensureSame(greedy.outcome, { kind: 'out-of-memory', limitBytes }, 'the outcome of the greedy one')
          const { outcome, usage } = await quiet
          ensureSame([outcome, usage.hits.memory], [{ kind: 'exited', code: 0 }, 0], 'the outcome of the other one, and its kills')
          return 'only the greedy one'
        },
      }),
  },
]
