import { ensure, ensureExited, ensureSame } from '../check.js'
import { askPython, python, withSandbox } from '../guest.js'
import type { Case } from '../subject.js'
import { withstand } from '../under-attack.js'

const MiB = 2 ** 20

/** As many empty files, folders and links as there can be, up to a million. */
const manyInodes = `import os, json, errno
n, reason = 0, 'none'
try:
    while n < 1000000:
        if n % 3 == 0: open('/tmp/f%d' % n, 'w').close()
        elif n % 3 == 1: os.mkdir('/workspace/d%d' % n)
        else: os.symlink('x', '/dev/shm/l%d' % n)
        n += 1
except OSError as e: reason = errno.errorcode[e.errno]
print(json.dumps([n, reason]))`

/** Grows a file in each way there is; says how large it became and what the kernel said. */
const grow = `import os, json, errno, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
size = int(sys.argv[1])
def tried(act):
    try: act(); return 'done'
    except OSError as e: return errno.errorcode[e.errno]
def seek_and_write(fd): os.lseek(fd, size, 0); os.write(fd, b'x')
seen = {}
for name, act in {'truncate': lambda fd: os.ftruncate(fd, size), 'write': seek_and_write, 'allocate': lambda fd: os.posix_fallocate(fd, 0, size)}.items():
    fd = os.open('/workspace/' + name, os.O_RDWR | os.O_CREAT)
    seen[name] = [tried(lambda: act(fd)), os.fstat(fd).st_size]
print(json.dumps(seen))`

const deep = `import os
depth = 0
try:
    while depth < 100000: os.mkdir('d'); os.chdir('d'); depth += 1
except OSError: pass
print(depth)`

export const diskAttackCases: readonly Case[] = [
  {
    id: 'attacks/inodes',
    name: 'a million files, folders and links stop at the inode limit, and are gone in a moment',
    needs: ['engine', 'isolates', 'limit:inodes'],
    run: (subject) =>
      withstand(subject, {
        spec: { limits: { inodes: 5000, disk: '32m' } },
        command: python(manyInodes),
        judge: (result) => {
          const [count, reason] = JSON.parse(ensureExited(result)) as [number, string]
          ensure(reason === 'ENOSPC' && count > 4000 && count <= 5000, 'must be stopped by ENOSPC at the limit', [count, reason])
          return `${count}, then ENOSPC`
        },
      }),
  },
  {
    id: 'attacks/sparse-file',
    name: 'a file of a terabyte cannot be made, not even an empty one',
    needs: ['engine', 'isolates', 'limit:fileSize'],
    run: (subject) =>
      withstand(subject, {
        spec: {},
        command: python(grow, String(2 ** 40)),
        judge: (result) => {
          const seen = JSON.parse(ensureExited(result)) as Record<string, [string, number]>
          ensureSame(seen, { truncate: ['EFBIG', 0], write: ['EFBIG', 0], allocate: ['EFBIG', 0] }, 'what became of the file')
          return 'EFBIG in every way'
        },
      }),
  },
  {
    id: 'limits/file-size-enforced',
    name: 'a file grows to exactly its limit and no further',
    needs: ['limit:fileSize'],
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          const within = await askPython<Record<string, [string, number]>>(sandbox, grow, { args: [String(MiB - 1)] })
          ensureSame(
            Object.values(within).map(([said]) => said),
            ['done', 'done', 'done'],
            'what is within the limit',
          )
          const beyond = await askPython<Record<string, [string, number]>>(sandbox, grow, { args: [String(MiB + 1)] })
          ensureSame(
            Object.values(beyond).map(([said]) => said),
            ['EFBIG', 'EFBIG', 'EFBIG'],
            'what is beyond it',
          )
          return 'EFBIG beyond 1 MiB'
        },
        { limits: { fileSize: MiB } },
      ),
  },
  {
    id: 'limits/open-files-enforced',
    name: 'descriptors end in EMFILE at the limit, which cannot be raised',
    needs: ['limit:openFiles'],
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          const script = `import os, json, errno, resource
try: resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)); raised = True
except (ValueError, OSError): raised = False
n, reason = 3, 'none'
try:
    while n < 5000: os.open('/dev/null', os.O_RDONLY); n += 1
except OSError as e: reason = errno.errorcode[e.errno]
print(json.dumps([n, reason, raised]))`
          const seen = await askPython<[number, string, boolean]>(sandbox, script)
          ensureSame(seen, [64, 'EMFILE', false], 'how many, why no more, whether the limit could be raised')
          return '64 descriptors, then EMFILE'
        },
        { limits: { openFiles: 64 } },
      ),
  },
  {
    id: 'limits/no-core',
    name: 'a program that crashes leaves no core dump, and cannot ask for one',
    needs: ['isolates'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const script = `import os, json, resource
try: resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20)); raised = True
except (ValueError, OSError): raised = False
if os.fork() == 0: os.abort()
status = os.wait()[1]
print(json.dumps([raised, os.WCOREDUMP(status), [n for n in os.listdir('.') if 'core' in n]]))`
        ensureSame(await askPython(sandbox, script), [false, false, []], 'whether the limit could be raised, whether core was dumped, and what is there')
        return 'none'
      }),
  },
  {
    id: 'attacks/deep-tree',
    name: 'a tree as deep as the disk allows is gone in a moment',
    needs: ['engine', 'isolates', 'limit:inodes'],
    run: (subject) =>
      withstand(subject, {
        spec: { limits: { inodes: 20_000 } },
        command: python(deep),
        judge: (result) => `${ensureExited(result).trim()} folders deep`,
      }),
  },
]
