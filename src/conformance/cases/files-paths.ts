import type { ErrorCode } from '../../contract/errors.js'
import { bytesOf, ensure, ensureBytes, ensureExited, ensureRejects, ensureSame, text } from '../check.js'
import { archiveOf, type ArchiveEntry, type FilesOf, gather, namesIn, pieces, withFiles } from '../files-of.js'
import { askPython, python } from '../guest.js'
import type { Case, HostView } from '../subject.js'

const needs = ['isolates'] as const

const raceOperations = 10_000
/** A machine that is busy with other things gets through fewer, and the case says so. */
const raceMs = 60_000

/** The folder of the canary, and its name. */
function canaryPlace({ canaries }: HostView): { readonly folder: string; readonly name: string } {
  const { path } = canaries.file
  const at = path.lastIndexOf('/')
  return { folder: path.slice(0, at), name: path.slice(at + 1) }
}

async function ensureUntouched({ canaries }: HostView, by: string): Promise<void> {
  const isUntouched = await canaries.file.isUntouched().catch(() => false)
  ensure(isUntouched, 'the canary of the host must be untouched', `${by} changed ${canaries.file.path}`)
}

type FileCall = readonly [what: string, act: () => Promise<unknown>]

function callsThrough(way: string, name: string, { files, read, write }: FilesOf): readonly FileCall[] {
  return [
    ['read', () => read(`${way}/${name}`)],
    ['list', () => gather(namesIn(files.list(way)))],
    ['search', () => files.search(way, '[0-9a-f]{48}', { regex: true })],
    ['pack', async () => gather(await files.pack(way))],
    ['mkdir', () => files.mkdir(`${way}/pwned`)],
    ['symlink', () => files.symlink('/', `${way}/linked`)],
    ['unpack', () => files.unpack(`${way}/x`, pieces(archiveOf([{ name, content: 'pwned' }])))],
    ['copy', () => files.copy(`${way}/${name}`, 'copied')],
    ['chmod', () => files.chmod(`${way}/${name}`, 0o666)],
    ['write', () => write(`${way}/${name}`, 'pwned')],
    ['move', () => files.move(`${way}/${name}`, 'moved')],
    ['remove', () => files.remove(`${way}/${name}`)],
    ['remove all of', () => files.remove(`${way}/.`, { recursive: true })],
  ]
}

/** A guest may do all of this to its own files, so a call that is done is as good as one that is refused: the canary tells whose files they were. */
async function tryOut(host: HostView, what: string, act: () => Promise<unknown>): Promise<'refused' | 'inside'> {
  const { content, path } = host.canaries.file
  const result = await act().then(
    (value) => ({ told: value instanceof Uint8Array ? text(value) : JSON.stringify([value]) }),
    (error: unknown) => ({ error }),
  )
  if ('error' in result) ensure(isRefusal(result.error), `${what} must be refused in words, or stay inside`, result.error)
  else ensure(!result.told.includes(content) && !isNamed(result.told, what, path), 'nothing may show the canary', `${what}: ${result.told}`)
  await ensureUntouched(host, what)
  return 'error' in result ? 'refused' : 'inside'
}

/** What lists a folder must not tell the canary's name; what is asked for by its name may. */
function isNamed(told: string, what: string, path: string): boolean {
  return what.startsWith('list ') && told.includes(path.slice(path.lastIndexOf('/') + 1))
}

function isRefusal(error: unknown): boolean {
  return (
    error instanceof Error && error.name === 'SandboxError' && ['not-found', 'denied', 'conflict', 'invalid'].includes((error as { code?: string }).code ?? '')
  )
}

/** Swaps a folder for a link and back, until it is stopped. */
const swap = `import os, sys
target = sys.argv[1]
os.makedirs('real', exist_ok=True)
open('real/' + sys.argv[2], 'w').write('mine')
print('ready', flush=True)
while True:
    for source in ('real', target):
        os.symlink(source, 'next')
        os.rename('next', 'd')
`

const links = `import os
os.chdir('/workspace')
open('end', 'w').write('end')
for n in range(60): os.symlink('end' if n == 0 else f'l{n - 1}', f'l{n}')
os.symlink('around', 'back'); os.symlink('back', 'around')`

const refusedPaths: readonly (readonly [path: string, codes: readonly ErrorCode[]])[] = [
  ['/workspace/l59', ['conflict']],
  ['/workspace/around', ['conflict']],
  [`/workspace/${'n'.repeat(300)}`, ['invalid']],
  [`/workspace/${'n/'.repeat(2500)}x`, ['invalid']],
  ['', ['invalid']],
  ['/workspace/a\0b', ['invalid']],
  ['/workspace-evil/a', ['not-found']],
]

const badArchives: readonly (readonly [what: string, entries: readonly ArchiveEntry[]])[] = [
  ['a name that climbs', [{ name: '../climbed', content: 'x' }]],
  ['a name that climbs in its middle', [{ name: 'a/../../climbed', content: 'x' }]],
  ['an absolute name', [{ name: '/tmp/climbed', content: 'x' }]],
  [
    'a link, then a file through it',
    [
      { name: 'd', type: '2', target: '/tmp' },
      { name: 'd/climbed', content: 'x' },
    ],
  ],
  ['a hard link out', [{ name: 'h', type: '1', target: '../secret' }]],
  ['a device', [{ name: 'null', type: '3' }]],
]

export const filePathCases: readonly Case[] = [
  {
    id: 'files/links-out',
    name: 'through a link that leads to the host\u2019s folders nothing of the host is read, listed, written, made, removed, packed or unpacked',
    needs,
    denial: true,
    run: (subject) =>
      withFiles(subject, async (of) => {
        const { folder, name } = canaryPlace(subject.host)
        ensureExited(await of.sandbox.run(python('import os, sys; os.symlink("/", "d"); os.symlink(sys.argv[1], "c")', folder)))
        const seen: string[] = []
        for (const way of [`d${folder}`, 'c']) {
          for (const [what, act] of callsThrough(way, name, of)) seen.push(await tryOut(subject.host, `${what} ${way}`, act))
        }
        const inside = seen.filter((verdict) => verdict === 'inside').length
        return `${seen.length} calls: ${inside} stayed inside, ${seen.length - inside} were refused`
      }),
  },
  {
    id: 'files/swapped-links',
    name: 'while a guest swaps a folder for a link, ten thousand reads and writes touch nothing of the host',
    needs,
    patienceMs: 400_000,
    run: (subject) =>
      withFiles(subject, async ({ sandbox, readText, write }) => {
        const { folder, name } = canaryPlace(subject.host)
        const program = await sandbox.start(python(swap, folder, name))
        const output = program.output[Symbol.asyncIterator]()
        await output.next()
        const seen = new Map<string, number>()
        let left = raceOperations
        const until = performance.now() + raceMs
        const work = async (): Promise<void> => {
          while (left > 0 && performance.now() < until) {
            left -= 1
            const act = left % 2 === 0 ? readText(`d/${name}`) : write(`d/${name}`, 'mine').then(() => 'written')
            const result = await act.catch((error: unknown) => (error as { code?: string }).code ?? String(error))
            seen.set(result, (seen.get(result) ?? 0) + 1)
          }
        }
        await Promise.all(Array.from({ length: 8 }, work))
        await program.kill()
        ensure(![...seen.keys()].some((value) => value.includes(subject.host.canaries.file.content)), 'nothing may show the canary', [...seen])
        ensure((seen.get('mine') ?? 0) + (seen.get('written') ?? 0) > 0, 'the folder itself must be reached now and then', [...seen])
        await ensureUntouched(subject.host, 'reads and writes')
        const extent = left === 0 ? `${raceOperations} operations` : `only ${raceOperations - left} operations in ${raceMs / 1000} s`
        return `${extent}: ${[...seen].map(([what, count]) => `${count} ${what}`).join(', ')}`
      }),
  },
  {
    id: 'files/paths',
    name: 'chains and circles of links, names and paths that are too long, empty or have a NUL are refused, and what only looks like a way up is a name',
    needs,
    run: (subject) =>
      withFiles(subject, async ({ sandbox, files, readText, write }) => {
        ensureExited(await sandbox.run(python(links)))
        // Half of the forty that the kernel follows: a walk that it has to begin anew counts them twice.
        ensureSame(await readText('/workspace/l18'), 'end', 'what is behind 19 links')
        for (const [path, codes] of refusedPaths) await ensureRejects(readText(path), codes)
        await ensureRejects(readText(`../../../../../..${subject.host.canaries.file.path}`), ['not-found', 'denied'])
        await ensureRejects(write('/workspace-evil', 'x'), ['denied', 'not-found'])
        for (const name of ['%2e%2e%2fa', '..\\a', 'a.', 'a ', '\u2024\u2024', '...']) {
          ensureSame((await write(name, name)).path, `/workspace/${name}`, 'where it was written')
        }
        const names = await askPython<string[]>(sandbox, 'import os, json; print(json.dumps(sorted(os.listdir("/workspace"))))')
        ensure(
          ['%2e%2e%2fa', '..\\a', 'a.', 'a ', '\u2024\u2024', '...'].every((name) => names.includes(name)),
          'each is a name of its own',
          names,
        )
        ensureSame((await files.stat('/workspace/../workspace/../etc/passwd'))?.type, 'file', 'the cell\u2019s own /etc/passwd')
        return 'refused'
      }),
  },
  {
    id: 'files/hostile-archives',
    name: 'archives with names, links and devices that lead out are refused and leave nothing outside; set-id bits are dropped',
    needs,
    run: (subject) =>
      withFiles(subject, async ({ files, read, write }) => {
        await write('/workspace/secret', 'secret')
        for (const [what, entries] of badArchives) {
          const error = await ensureRejects(files.unpack('/workspace/into', pieces(archiveOf(entries))), ['denied', 'conflict', 'invalid'])
          ensure(error.message.startsWith('files.unpack '), `${what} must be told as such`, error)
        }
        for (const path of ['/workspace/climbed', '/tmp/climbed']) ensureSame(await files.stat(path), null, path)
        ensureBytes(await read('/workspace/secret'), bytesOf('secret'), 'the file beside it')
        const good = archiveOf([
          { name: 'bin/', type: '5', mode: 0o755 },
          { name: 'bin/suid', content: '#!/bin/sh', mode: 0o6755 },
        ])
        ensureSame(await files.unpack('/workspace/good', pieces(good)), 2, 'the number of entries')
        ensureSame((await files.stat('/workspace/good/bin/suid'))?.mode, 0o755, 'the mode of a set-id program')
        return `${badArchives.length} archives refused`
      }),
  },
]
