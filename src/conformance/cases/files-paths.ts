import type { ErrorCode } from '../../contract/errors.js'
import { bytesOf, ensure, ensureBytes, ensureExited, ensureRejects, ensureSame, text } from '../check.js'
import { archiveOf, type ArchiveEntry, gather, pieces, withFiles } from '../files-of.js'
import { askPython, python } from '../guest.js'
import type { Case, HostView } from '../subject.js'

const needs = ['engine', 'isolates'] as const

/** The folder of the canary, and its name. */
function canaryPlace({ canaries }: HostView): { readonly folder: string; readonly name: string } {
  const { path } = canaries.file
  const at = path.lastIndexOf('/')
  return { folder: path.slice(0, at), name: path.slice(at + 1) }
}

async function ensureUntouched(host: HostView): Promise<void> {
  ensure(await host.canaries.file.isUntouched(), 'the canary of the host must be untouched', host.canaries.file.path)
}

/** Swaps a folder for a link and back, until it is stopped. */
const swap = `import os, sys
target = sys.argv[1]
os.makedirs('/workspace/real', exist_ok=True)
open('/workspace/real/' + sys.argv[2], 'w').write('mine')
print('ready', flush=True)
while True:
    for source in ('real', target):
        os.symlink(source, '/workspace/next')
        os.rename('/workspace/next', '/workspace/d')
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
    run: (subject) =>
      withFiles(subject, async ({ sandbox, files, read, write }) => {
        const { folder, name } = canaryPlace(subject.host)
        ensureExited(await sandbox.run(python('import os, sys; os.symlink("/", "/workspace/d"); os.symlink(sys.argv[1], "/workspace/c")', folder)))
        const attempts = [`d${folder}`, 'c'].flatMap((way) => [
          read(`${way}/${name}`),
          write(`${way}/${name}`, 'pwned'),
          files.mkdir(`${way}/pwned`),
          files.remove(`${way}/${name}`),
          files.remove(`${way}/.`, { recursive: true }),
          gather(listed(files.list(way))),
          files.pack(way).then(gather),
          files.unpack(`${way}/x`, pieces(archiveOf([{ name, content: 'pwned' }]))),
          files.move('/workspace/c', `${way}/${name}`),
        ])
        const seen = (await Promise.allSettled(attempts)).map((result) =>
          result.status === 'fulfilled' && result.value instanceof Uint8Array ? text(result.value) : '',
        )
        ensure(!seen.some((value) => value.includes(subject.host.canaries.file.content)), 'nothing may show the canary', seen)
        await ensureUntouched(subject.host)
        return `${attempts.length} attempts`
      }),
  },
  {
    id: 'files/swapped-links',
    name: 'while a guest swaps a folder for a link, up to ten thousand reads and writes touch nothing of the host',
    needs,
    run: (subject) =>
      withFiles(subject, async ({ sandbox, readText, write }) => {
        const { folder, name } = canaryPlace(subject.host)
        const program = await sandbox.start(python(swap, folder, name))
        const output = program.output[Symbol.asyncIterator]()
        await output.next()
        const seen = new Map<string, number>()
        let left = 10_000
        // A machine that is busy with other things gets through fewer.
        const until = performance.now() + 15_000
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
        await ensureUntouched(subject.host)
        return [...seen].map(([what, count]) => `${count} ${what}`).join(', ')
      }),
  },
  {
    id: 'files/paths',
    name: 'chains and circles of links, names and paths that are too long, empty or have a NUL are refused, and what only looks like a way up is a name',
    needs,
    run: (subject) =>
      withFiles(subject, async ({ sandbox, files, readText, write }) => {
        ensureExited(await sandbox.run(python(links)))
        ensureSame(await readText('/workspace/l20'), 'end', 'what is behind 21 links')
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

async function* listed(entries: AsyncIterable<{ readonly name: string }>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const { name } of entries) yield bytesOf(name)
}
