import type { FileEvent } from '../../contract/files.js'
import { CaseFailure, ensure, ensureExited, ensureRejects, ensureSame } from '../check.js'
import { type FilesOf, gather, pieces, withFiles } from '../files-of.js'
import { askPython, python } from '../guest.js'
import type { Case } from '../subject.js'

/** Far more events than any queue of them holds. */
const flood = `import os
names = ['a' * 250, 'b' * 250]
for name in names: open(name, 'w').close()
for i in range(40000): os.utime(names[i % 2])
os.mkdir('made')`

const level = 'level'
/** Their paths are longer than the kernel takes one, but not than what is told. */
const levels = 800
/** Longer than what is told, too. */
const moreLevels = 2000

/** Goes on below what is there. */
const deepen = `import os, sys
os.makedirs('deep', exist_ok=True); os.chdir('deep')
while os.path.isdir('${level}'): os.chdir('${level}')
for _ in range(int(sys.argv[1])): os.mkdir('${level}'); os.chdir('${level}')
open('bottom', 'w').write('needle')`

/** How many folders are in each other, and what is in the last. */
const measure = `import json, os, sys
os.chdir(sys.argv[1])
count = 0
while os.path.isdir('${level}'): os.chdir('${level}'); count += 1
print(json.dumps([count, open('bottom').read() if os.path.exists('bottom') else None]))`

/** Reads up to this one. */
async function shows(events: AsyncIterator<FileEvent>, isIt: (event: FileEvent) => boolean): Promise<void> {
  for (let next = await events.next(); next.done !== true; next = await events.next()) if (isIt(next.value)) return
  throw new CaseFailure('a watch must not end', 'it ended')
}

async function countListed({ files }: FilesOf): Promise<number> {
  let count = 0
  for await (const _ of files.list('deep', { depth: Infinity })) count += 1
  return count
}

export const fileFaultCases: readonly Case[] = [
  {
    id: 'files/watch-overflow',
    name: 'events that nobody reads are lost in bounded memory, which is told; what happens afterwards is told again',
    // How many events wait is for the kernel to bound.
    needs: ['shared-kernel'],
    run: (subject) =>
      withFiles(subject, async ({ sandbox, files, write }) => {
        await files.mkdir('w')
        const { path } = await write('w/first', 'x')
        const events = (await files.watch('w', { recursive: true }))[Symbol.asyncIterator]()
        ensureExited(await sandbox.run(python(flood), { cwd: path.slice(0, path.lastIndexOf('/')) }))
        await shows(events, ({ type }) => type === 'overflow')
        await write('w/made/after', 'x')
        await shows(events, (event) => event.type === 'created' && event.path.endsWith('/w/made/after'))
        await events.return?.()
        return 'told'
      }),
  },
  {
    id: 'files/deep-tree',
    name: 'a tree whose paths are longer than a kernel takes is listed, searched, copied, packed, unpacked, moved and removed whole, and what is too deep for that is told',
    needs: ['isolates'],
    run: (subject) =>
      withFiles(subject, async (of) => {
        const { sandbox, files } = of
        ensureExited(await sandbox.run(python(deepen, String(levels))))
        ensureSame(await countListed(of), levels + 1, 'how many are listed')
        const { matches, skipped } = await files.search('deep', 'needle')
        ensureSame([matches.length + skipped, matches.length], [1, 1], 'what was found or left out')
        await files.copy('deep', 'copied')
        await files.unpack('unpacked', pieces(await gather(await files.pack('deep'))))
        await files.move('copied', 'moved')
        for (const path of ['unpacked', 'moved']) {
          ensureSame(await askPython(sandbox, measure, { args: [path] }), [levels, 'needle'], `the depth of ${path}`)
          ensureSame(await files.remove(path, { recursive: true }), true, `that ${path} was there`)
        }
        ensureExited(await sandbox.run(python(deepen, String(moreLevels))))
        await ensureRejects(countListed(of), ['invalid'])
        await ensureRejects(files.pack('deep').then(gather), ['invalid'])
        ensureSame(await files.remove('deep', { recursive: true }), true, 'that it was there')
        ensureSame(await askPython(sandbox, 'import json, os; print(json.dumps(os.listdir(".")))'), [], 'what is left')
        return `${levels} levels, and ${moreLevels} more`
      }),
  },
  {
    id: 'files/closed-folders',
    name: 'a folder that its user may not enter stops a copy, an archive and a removal, each of which names it and leaves nothing behind',
    needs: ['isolates'],
    run: (subject) =>
      withFiles(subject, async ({ sandbox, files }) => {
        ensureExited(await sandbox.run('mkdir -p tree/a/closed && touch tree/a/closed/x && chmod 0 tree/a/closed'))
        for (const act of [() => files.copy('tree', 'other'), () => files.pack('tree').then(gather), () => files.remove('tree', { recursive: true })]) {
          const { message } = await ensureRejects(act(), ['denied'])
          ensure(message.includes('a/closed'), 'what is closed must be named', message)
        }
        ensureSame(await askPython(sandbox, 'import json, os; print(json.dumps(os.listdir(".")))'), ['tree'], 'what is there')
        await files.chmod('tree/a/closed', 0o700)
        return String(await files.remove('tree', { recursive: true }))
      }),
  },
]
