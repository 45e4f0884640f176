import { ensure, ensureExited, ensureSame } from '../check.js'
import { askPython, python, withSandbox } from '../guest.js'
import type { Case, Subject, SubjectSandbox, SubjectSnapshots } from '../subject.js'
import type { SpecInput } from '../../contract/spec.js'

/**
 * Everything that can be done to what lies beneath, once: a folder that is made anew in the place of another, a file that moves, changes, goes, or becomes a folder,
 * and what is new. Prints what it did as the difference must tell it.
 */
const doings = `
import json, os, shutil, sys
top = sys.argv[1]
def small(path):
  return sum(len(names) + len(folders) for _, folders, names in os.walk(path))
def pick(is_fit):
  for path in beneath:
    if path not in picked and not os.path.islink(path) and is_fit(path):
      picked.append(path)
      return path
beneath = sorted(os.path.join(top, name) for name in os.listdir(top))
picked = []
told = []
folder = pick(lambda path: os.path.isdir(path) and 0 < small(path) < 200)
if folder:
  told += ['removed ' + os.path.join(at, name) for at, folders, names in os.walk(folder) for name in folders + names]
  mode = os.lstat(folder).st_mode & 0o777
  shutil.rmtree(folder); os.mkdir(folder); os.chmod(folder, mode)
  open(folder + '/anew', 'w').write('anew'); told.append('added ' + folder + '/anew')
moved = pick(os.path.isfile)
if moved:
  os.rename(moved, moved + '.moved'); told += ['removed ' + moved, 'added ' + moved + '.moved']
changed = pick(os.path.isfile)
if changed:
  open(changed, 'a').write('more'); os.chmod(changed, 0o640); told.append('changed ' + changed)
touched = pick(os.path.isfile)
if touched: os.utime(touched, (1, 1))
mine = os.path.join(top, 'gbx-mine')
os.makedirs(mine + '/deep', 0o750); open(mine + '/a', 'w').write('alpha'); os.link(mine + '/a', mine + '/b')
os.symlink('../nowhere', mine + '/link'); os.mkfifo(mine + '/fifo', 0o600); open(mine.encode() + b'/.wh.literal', 'w').write('literal')
told += ['added ' + mine + name for name in ['', '/deep', '/a', '/b', '/link', '/fifo', '/.wh.literal']]
print(json.dumps(sorted(told)))
`

/** Of whatever was there and is there: type, mode, owner, names and content. */
const look = `
import hashlib, json, os, stat, sys
rows = []
for at, folders, names in os.walk(sys.argv[1]):
  for name in folders + names:
    path = os.path.join(at, name); s = os.lstat(path)
    content = os.readlink(path) if stat.S_ISLNK(s.st_mode) else hashlib.sha256(open(path, 'rb').read()).hexdigest() if stat.S_ISREG(s.st_mode) else ''
    rows.append([path, oct(s.st_mode & 0o171777), s.st_uid, s.st_gid, content])
print(json.dumps(sorted(rows)))
`

interface Place {
  readonly spec: SpecInput
  /** A folder of the cell's that is, or is in, an overlay. */
  readonly top: string
}

function snapshotsOf(sandbox: SubjectSandbox): SubjectSnapshots {
  ensure(sandbox.snapshots !== undefined, 'an engine must have snapshots', sandbox)
  return sandbox.snapshots
}

/** The same at every place: the difference tells what was done, and whoever begins with it sees the same. */
async function ensureKept(subject: Subject, { spec, top }: Place): Promise<string> {
  return withSandbox(
    subject,
    async (sandbox) => {
      const snapshots = snapshotsOf(sandbox)
      const view = (of: SubjectSandbox): Promise<unknown> => askPython(of, look, { args: [top] })
      const told = async (of: SubjectSnapshots): Promise<string[]> => (await of.diff({})).map(({ type, path }) => `${type} ${path}`).sort()
      ensureSame(await told(snapshots), [], 'the difference before anything was done')
      const done = await askPython<string[]>(sandbox, doings, { args: [top] })
      ensureSame(await told(snapshots), done, 'the difference')
      const seen = await view(sandbox)
      const { id } = await snapshots.take({})
      try {
        await withSandbox(
          subject,
          async (again) => {
            ensureSame(await view(again), seen, 'what is seen by one that begins with it')
            ensureSame(await told(snapshotsOf(again)), done, 'the difference in one that begins with it')
            ensureSame((await snapshotsOf(again).take({})).id, id, 'the id of the same again')
            ensureExited(await again.run(python(`import shutil; shutil.rmtree('${top}/gbx-mine')`)))
          },
          { ...spec, from: id },
        )
        ensureSame(await view(sandbox), seen, 'what the first one sees')
        ensureSame(await snapshots.diff({ since: id }), [], 'the difference of the first one to what was kept')
        await sandbox.pause({ memory: false })
        await sandbox.resume()
        ensureSame(await view(sandbox), seen, 'what it sees after it was away')
      } finally {
        await snapshots.remove(id)
      }
      return `${done.length} changes`
    },
    spec,
  )
}

export const overlaySnapshotCases: readonly Case[] = [
  {
    id: 'snapshots/overlay-root',
    name: 'of a root that may be written all over, what was done to the template is told, kept, and seen again',
    needs: ['engine', 'feature:root-overlay', 'user:root'],
    run: (subject) => ensureKept(subject, { spec: { root: 'overlay', user: 'root' }, top: '/etc' }),
  },
  {
    id: 'snapshots/overlay-mount',
    name: 'of a folder under an overlay, what was done to it is told, kept, and seen again; the folder stays as it is',
    needs: ['engine', 'feature:mounts-overlay'],
    run: async (subject) => {
      const { file } = subject.host.canaries
      const source = file.path.slice(0, file.path.lastIndexOf('/'))
      const told = await ensureKept(subject, { spec: { mounts: [{ source, target: '/workspace/over', mode: 'overlay' }] }, top: '/workspace/over' })
      ensure(await file.isUntouched(), 'the file beneath must stay as it is', file.path)
      return told
    },
  },
]
