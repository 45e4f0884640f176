import { ensure, ensureSame, show, text } from '../check.js'
import { askPython, python, withSandbox } from '../guest.js'
import type { Case, SubjectProcess } from '../subject.js'

/** Opened by nobody in a cell unless it is told to. */
const hostFile = '/usr/bin/env'

/** Says what was opened in the file's folder until it hears a line, and whether it sees itself open that file. */
const watch = `
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
path = sys.argv[1]
events = libc.inotify_init1(os.O_NONBLOCK)
for place in (os.path.dirname(path), path):
    if libc.inotify_add_watch(events, place.encode(), 0x21) < 0: raise OSError(ctypes.get_errno(), place)
def seen():
    try: got = os.read(events, 1 << 20)
    except BlockingIOError: return []
    names = set()
    while got:
        length = int.from_bytes(got[12:16], 'little')
        names.add(got[16:16 + length].rstrip(b'\\0').decode() or 'the file itself')
        got = got[16 + length:]
    return sorted(names)
print('watching', flush=True)
sys.stdin.readline()
before = seen()
open(path, 'rb').read(1)
print(json.dumps({'before': before, 'own': seen()}))`

const lock = `
import fcntl, sys
held = [open(path) for path in sys.argv[1:]]
for file in held: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print('locked', flush=True)
sys.stdin.readline()`

const findLocked = `
import fcntl, json, sys
def is_locked(path):
    with open(path) as file:
        try: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError: return True
    return False
print(json.dumps([path for path in sys.argv[1:] if is_locked(path)]))`

/** A program that says a word, waits while something else is done, and goes on. Resolves to what it printed after the word. */
async function during(program: SubjectProcess, act: () => Promise<void>): Promise<string> {
  const events = program.output[Symbol.asyncIterator]()
  const word = await events.next()
  ensure(word.done !== true && word.value.type === 'stdout', 'the program must say that it is ready', word.done ? 'it ended' : text(word.value.bytes))
  await act()
  await program.endInput()
  const rest: Uint8Array[] = []
  for (let next = await events.next(); next.done !== true; next = await events.next()) rest.push(next.value.bytes)
  await program.ended
  return rest.map(text).join('')
}

const hostOpens: Case = {
  id: 'isolation/host-opens',
  name: 'a guest is not told what the host opens',
  needs: ['isolates', 'own-inodes'],
  denial: true,
  run: (subject) =>
    withSandbox(subject, async (sandbox) => {
      const watcher = await sandbox.start(python(watch, hostFile), { stdin: true })
      const told = await during(watcher, () => subject.host.readFile(hostFile))
      const { before, own } = JSON.parse(told) as { before: string[]; own: string[] }
      ensureSame(before, [], 'what the cell sees of the host')
      ensureSame(own, ['env', 'the file itself'], 'what it sees of itself')
      return `nothing of the host; of itself ${show(own)}`
    }),
}

const separateLocks: Case = {
  id: 'isolation/separate-locks',
  name: 'a lock on a file of the system is no lock for another sandbox',
  needs: ['isolates', 'own-inodes'],
  denial: true,
  run: (subject) =>
    withSandbox(subject, (first) =>
      withSandbox(subject, async (second) => {
        const files = [hostFile, '/etc/passwd']
        const holder = await first.start(python(lock, ...files), { stdin: true })
        await during(holder, async () => {
          ensureSame(await askPython(first, findLocked, { args: files }), files, 'what the first sees locked')
          ensureSame(await askPython(second, findLocked, { args: files }), [], 'what the second sees locked')
        })
        return 'locked for the first, free for the second'
      }),
    ),
}

/** Before its own program is there, a process of a cell is one of the warden's. */
const wardenAgain: Case = {
  id: 'isolation/warden-again',
  name: "a cell's first program cannot be started again by a guest",
  needs: ['isolates'],
  denial: true,
  run: (subject) =>
    withSandbox(subject, async (sandbox) => {
      await sandbox.run(['sh', '-c', 'printf "#!/proc/self/exe\\n" >script; chmod 755 script'])
      const outcomes = [await sandbox.run(['/proc/self/exe']), await sandbox.run(['./script'])].map(({ outcome }) => outcome)
      ensure(
        outcomes.every((outcome) => outcome.kind === 'not-started' && outcome.code === 126),
        'every try must be denied',
        outcomes,
      )
      return show(outcomes)
    }),
}

export const inodeIsolationCases: readonly Case[] = [hostOpens, separateLocks, wardenAgain]
