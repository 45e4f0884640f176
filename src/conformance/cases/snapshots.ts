import { ensure, ensureExited, ensureRejects, ensureSame } from '../check.js'
import { python, randomName, until, withSandbox } from '../guest.js'
import type { Case, Subject, SubjectSandbox, SubjectSnapshots } from '../subject.js'

/** A small tree of everything that can be kept: names that are no text, modes, links of both kinds, a FIFO, a folder without anything in it. */
const plant = `
import os
os.mkdir('d'); os.mkdir('d/empty', 0o700)
open('d/a', 'w').write('alpha'); os.chmod('d/a', 0o640)
os.link('d/a', 'd/b'); os.symlink('a', 'd/link'); os.mkfifo('d/fifo', 0o600)
open(b'd/\\xff', 'w').write('beta'); open('d/zero', 'w').close()
`

const look = `
import os, stat
for top, folders, files in sorted(os.walk(b'd')):
  for name in sorted(folders + files):
    path = os.path.join(top, name); s = os.lstat(path)
    content = os.readlink(path) if stat.S_ISLNK(s.st_mode) else open(path, 'rb').read() if stat.S_ISREG(s.st_mode) else b''
    print(path, oct(s.st_mode), s.st_nlink if stat.S_ISREG(s.st_mode) else '', content, int(s.st_mtime))
`

async function seen(sandbox: SubjectSandbox): Promise<string> {
  return ensureExited(await sandbox.run(python(look)))
}

function snapshotsOf(sandbox: SubjectSandbox): SubjectSnapshots {
  ensure(sandbox.snapshots !== undefined, 'an engine must have snapshots', sandbox)
  return sandbox.snapshots
}

/** Whatever becomes of the case, nothing it kept stays. */
async function withSnapshot<T>(subject: Subject, use: (sandbox: SubjectSandbox, id: string) => Promise<T>): Promise<T> {
  return withSandbox(subject, async (sandbox) => {
    ensureExited(await sandbox.run(python(plant)))
    const snapshots = snapshotsOf(sandbox)
    const { id } = await snapshots.take({ name: randomName() })
    try {
      return await use(sandbox, id)
    } finally {
      await snapshots.remove(id)
    }
  })
}

/** Counts, first in one file, then in the other; in the same places, so that only what is written tells. */
const counting = `
import os, time
one, two = (os.open(name, os.O_RDWR | os.O_CREAT, 0o644) for name in ('one', 'two'))
number = 0
end = time.time() + 35
while time.time() < end:
  number += 1
  for file in (one, two): os.pwrite(file, b'%020d' % number, 0)
`

export const snapshotCases: readonly Case[] = [
  {
    id: 'snapshots/begin-again',
    name: 'a sandbox that begins with a snapshot has the same files: bytes, names, modes, times and links',
    needs: ['engine'],
    run: (subject) =>
      withSnapshot(subject, async (sandbox, id) => {
        const before = await seen(sandbox)
        const after = await withSandbox(subject, seen, { from: id })
        ensureSame(after, before, 'what is there')
        return `${before.split('\n').length - 1} entries`
      }),
  },
  {
    id: 'snapshots/same-content-same-id',
    name: 'equal content has one id, whatever the times; one more byte has another',
    needs: ['engine'],
    run: (subject) =>
      withSnapshot(subject, async (sandbox, id) => {
        const snapshots = snapshotsOf(sandbox)
        ensureExited(await sandbox.run(['touch', '-d', '2001-02-03', 'd/zero']))
        ensureSame((await snapshots.take({})).id, id, 'the id after a touch')
        ensureExited(await sandbox.run('printf x >> d/zero'))
        const other = (await snapshots.take({})).id
        await snapshots.remove(other)
        ensure(other !== id, 'another content must have another id', other)
        return id
      }),
  },
  {
    id: 'snapshots/difference',
    name: 'what was added, changed and removed since a snapshot is told, and nothing else',
    needs: ['engine'],
    run: (subject) =>
      withSnapshot(subject, async (sandbox, id) => {
        const snapshots = snapshotsOf(sandbox)
        ensureSame(await snapshots.diff({ since: id }), [], 'the difference to itself')
        ensureExited(await sandbox.run('echo more > d/new; printf "" > d/a; rm d/link; chmod 600 d/zero'))
        const told = (await snapshots.diff({ since: id })).map(({ type, path, size }) => `${type} ${path.replace(/^.*\/d\//, 'd/')} ${size}`)
        ensureSame(told, ['changed d/a 0', 'changed d/b 0', 'removed d/link 1', 'added d/new 5', 'changed d/zero 0'], 'the difference')
        return told.join(', ')
      }),
  },
  {
    id: 'snapshots/forks-apart',
    name: 'forks begin with the files of their origin and then share nothing with it or each other',
    needs: ['engine'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        ensureExited(await sandbox.run('echo origin > f'))
        const forks = await snapshotsOf(sandbox).fork(2)
        try {
          const [one, other] = forks as [SubjectSandbox, SubjectSandbox]
          ensureExited(await one.run('echo one > f'))
          const contents = await Promise.all([sandbox, one, other].map(async (each) => ensureExited(await each.run(['cat', 'f']))))
          ensureSame(contents, ['origin\n', 'one\n', 'origin\n'], 'the files')
          return contents.join('').trim()
        } finally {
          await Promise.all(forks.map((fork) => fork.close()))
        }
      }),
  },
  {
    id: 'snapshots/still',
    name: 'what a program writes without end is kept as it was at one moment, and the program goes on',
    needs: ['engine', 'feature:pause', 'shared-kernel'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        // What takes long lies between the two, by name and by age.
        ensureExited(await sandbox.run('echo 0 > one; head -c 16000000 /dev/urandom > some'))
        const process = await sandbox.start(python(counting))
        const counted = async (of: SubjectSandbox): Promise<number[]> =>
          (await Promise.all(['one', 'two'].map(async (name) => ensureExited(await of.run(['cat', name]))))).map(Number)
        const goesOn = async (before: number): Promise<boolean> => until(async () => ((await counted(sandbox).catch(() => []))[1] ?? 0) > before)
        ensure(await goesOn(0), 'the program must write before it is kept', process)
        const { id } = await snapshotsOf(sandbox).take({})
        try {
          const [one = 0, two = 0] = await withSandbox(subject, counted, { from: id })
          ensure(one - two === 0 || one - two === 1, 'both files must be of one moment', { one, two })
          ensure(await goesOn(one), 'the program must go on', one)
          return `${one} and ${two}`
        } finally {
          await snapshotsOf(sandbox).remove(id)
          await process.kill()
        }
      }),
  },
  {
    id: 'snapshots/unknown',
    name: 'a snapshot that is not there, or a name that passes for an id, is refused before anything starts',
    needs: ['engine'],
    run: async (subject) => {
      const missing = await ensureRejects(subject.open({ from: randomName() }), ['not-found'])
      await ensureRejects(subject.open({ from: 'sha256:12' }), ['invalid'])
      await withSandbox(subject, (sandbox) => ensureRejects(snapshotsOf(sandbox).take({ name: 'ab'.repeat(32) }), ['invalid']))
      return missing.message
    },
  },
  {
    id: 'snapshots/no-room',
    name: 'a snapshot that needs more disk than the new sandbox has is refused, naming the limit',
    needs: ['engine', 'limit:disk'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        ensureExited(await sandbox.run('head -c 3000000 /dev/urandom > big'))
        const snapshots = snapshotsOf(sandbox)
        const { id } = await snapshots.take({})
        try {
          const error = await ensureRejects(subject.open({ from: id, limits: { disk: '1m' } }), ['invalid'])
          ensure(error.message.startsWith('limits.disk: '), 'the message must name limits.disk', error.message)
          return error.message
        } finally {
          await snapshots.remove(id)
        }
      }),
  },
]
