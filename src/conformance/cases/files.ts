import { bytesOf, ensure, ensureBytes, ensureExited, ensureRejects, ensureSame, rejectionOf } from '../check.js'
import { gather, namesIn, pieces, withFiles } from '../files-of.js'
import { askPython, python } from '../guest.js'
import type { Case } from '../subject.js'

const MB = 1_000_000

function pattern(length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let at = 0; at < length; at += 1) bytes[at] = (at * 31 + (at >>> 8)) & 0xff
  return bytes
}

async function hexOf(bytes: Uint8Array): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return [...hash].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

const hashFile = `import hashlib, sys, json, os
print(json.dumps(hashlib.sha256(open(os.fsencode(sys.argv[1]), 'rb').read()).hexdigest()))`

const oddNames = ['with space', 'new\nline', 'ünïcödé-😀', '-rf', '*', 'quote\'"$(x)', 'n'.repeat(255), '.hidden']

async function* endless(): AsyncGenerator<Uint8Array, void, undefined> {
  for (;;) yield await Promise.resolve(new Uint8Array(65_536))
}

export const fileCases: readonly Case[] = [
  {
    id: 'files/round-trip',
    name: 'what is written is what programs read, and what they write is what is read: odd names, no bytes, 50 MB',
    run: (subject) =>
      withFiles(subject, async ({ sandbox, files, read, write }) => {
        for (const name of oddNames) {
          const content = bytesOf(`content of ${name}`)
          await write(name, content)
          ensureSame(await askPython(sandbox, hashFile, { args: [name] }), await hexOf(content), `the hash of ${name}`)
          ensureBytes(await read(name), content, name)
        }
        const notText = Uint8Array.of(0x61, 0xff, 0x62)
        await write(notText, 'odd')
        ensureBytes(await read(notText), bytesOf('odd'), 'a name that is no text')
        const found: { name: string; hasBytes: boolean }[] = []
        for await (const { name, pathBytes } of files.list('.')) found.push({ name, hasBytes: pathBytes !== undefined })
        ensureSame(
          found.filter(({ hasBytes }) => hasBytes).map(({ name }) => name),
          ['a\uFFFDb'],
          'names that are no text',
        )
        for (const length of [0, 1, 65_536, 65_537, 50 * MB]) {
          const content = pattern(length)
          await write('sized', content)
          ensureSame(await askPython(sandbox, hashFile, { args: ['sized'] }), await hexOf(content), `the hash of ${length} bytes`)
          ensureBytes(await read('sized'), content, `${length} bytes`)
        }
        ensureBytes(await read('sized', { offset: 100_000, length: 10 }), pattern(100_010).subarray(100_000), 'a part')
        ensureSame((await read('sized', { offset: 60 * MB })).length, 0, 'what is behind the end')
        return `${oddNames.length + 1} names, 5 sizes`
      }),
  },
  {
    id: 'files/acts',
    name: 'files are stated, listed, moved, copied, linked, changed in mode, searched and removed, and what is missing is told',
    run: (subject) =>
      withFiles(subject, async ({ files, readText, write }) => {
        ensureSame((await write('a/b/c.txt', 'one\ntwo\n', { mode: 0o600 })).mode, 0o600, 'the mode')
        await write('a/b/c.txt', 'three\n', { append: true })
        ensureSame(await readText('a/b/c.txt'), 'one\ntwo\nthree\n', 'what was appended')
        await ensureRejects(write('a/b/c.txt', 'x', { exclusive: true }), ['conflict'])
        await files.copy('a', 'copy')
        await files.move('copy/b/c.txt', 'moved')
        ensureSame([await files.stat('copy/b/c.txt'), await readText('moved')], [null, 'one\ntwo\nthree\n'], 'what was moved')
        ensureSame((await files.symlink('a/b', 'link')).target, 'a/b', 'a link')
        ensureSame(await readText('link/c.txt'), 'one\ntwo\nthree\n', 'through a link')
        ensureSame((await files.chmod('moved', 0o640)).mode, 0o640, 'the mode')
        const { matches } = await files.search('.', 'two', { glob: 'a/**' })
        ensureSame(
          matches.map(({ line, column, text }) => ({ line, column, text })),
          [{ line: 2, column: 1, text: 'two' }],
          'what was found',
        )
        const names: string[] = []
        for await (const { path } of files.list('.', { glob: '**/*.txt' })) names.push(path)
        ensure(names.length === 1 && names[0]?.endsWith('/a/b/c.txt') === true, 'the glob must find one', names)
        await ensureRejects(files.remove('a'), ['conflict'])
        ensureSame([await files.remove('a', { recursive: true }), await files.remove('a', { recursive: true })], [true, false], 'removing')
        await ensureRejects(readText('a'), ['not-found'])
        await ensureRejects(files.move('a', 'b'), ['not-found'])
        await ensureRejects(files.chmod('a', 0o600), ['not-found'])
        await ensureRejects(gather(namesIn(files.list('a'))), ['not-found'])
        return 'done'
      }),
  },
  {
    id: 'files/no-files',
    name: 'a FIFO, a device and a folder are no files to read; a file of /proc that tells no size is',
    needs: ['isolates'],
    run: (subject) =>
      withFiles(subject, async ({ sandbox, read, readText, write }) => {
        ensureExited(await sandbox.run(['mkfifo', '/workspace/pipe']))
        for (const path of ['/workspace/pipe', '/dev/zero', '/workspace']) await ensureRejects(read(path), ['conflict'])
        for (const path of ['/workspace/pipe', '/workspace']) await ensureRejects(write(path, 'x'), ['conflict'])
        ensure((await readText('/proc/self/status')).includes('Name:'), 'its own status must be readable', '')
        return 'told'
      }),
  },
  {
    id: 'files/full-disk',
    name: 'a write beyond the disk is told as full, an atomic one leaves what was there, and the sandbox goes on',
    needs: ['limit:disk'],
    run: (subject) =>
      withFiles(
        subject,
        async ({ files, readText, write }) => {
          await write('kept', 'old')
          const error = await ensureRejects(write('kept', pattern(20 * MB), { atomic: true }), ['full'])
          ensure(error.message.includes('limits.'), 'the limit must be named', error)
          ensureSame(await readText('kept'), 'old', 'what was there')
          await ensureRejects(write('large', pattern(20 * MB)), ['full'])
          await files.remove('large')
          await write('small', 'fits')
          return error.message
        },
        { limits: { disk: '8m' } },
      ),
  },
  {
    id: 'files/slow-and-endless',
    name: 'a reader that stops reading holds up nobody else, and a writer that never ends is ended by its signal',
    run: (subject) =>
      withFiles(subject, async ({ files, readText, write }) => {
        await write('large', pattern(20 * MB))
        const { bytes } = await files.read('large')
        const reader = bytes[Symbol.asyncIterator]()
        await reader.next()
        await write('other', 'other')
        ensureSame(await readText('other'), 'other', 'another file meanwhile')
        await reader.return?.()
        const controller = new AbortController()
        const reason = new Error('enough')
        const timer = setTimeout(() => controller.abort(reason), 200)
        const told = await rejectionOf(files.write('endless', endless(), { atomic: true, signal: controller.signal }))
        clearTimeout(timer)
        // A small disk may be full before.
        ensure(told === reason || (told as { code?: string }).code === 'full', 'must reject with the reason', told)
        ensureSame([await files.stat('endless'), await readText('other')], [null, 'other'], 'what is there afterwards')
        return 'held up nobody'
      }),
  },
  {
    id: 'files/killed-workers',
    name: 'a guest that kills every process of its user ends operations on files, which say so, and nothing else',
    needs: ['isolates'],
    run: (subject) =>
      withFiles(subject, async ({ sandbox, readText, write }) => {
        const killer = await sandbox.start(
          python('import os, time\nfor _ in range(60):\n    try: os.kill(-1, 9)\n    except OSError: pass\n    time.sleep(0.02)'),
        )
        const results: string[] = []
        for (let round = 0; round < 40; round += 1) {
          results.push(
            await write('f', `round ${round}`).then(
              () => 'written',
              (error: unknown) => (error as { code?: string }).code ?? String(error),
            ),
          )
        }
        await killer.kill()
        ensure(
          results.every((result) => result === 'written' || result === 'conflict'),
          'each must be done or told as a conflict',
          results,
        )
        await write('f', 'after')
        ensureSame(await readText('f'), 'after', 'what is written afterwards')
        return `${results.filter((result) => result === 'conflict').length} of ${results.length} ended`
      }),
  },
  {
    id: 'files/owners',
    name: 'what is made belongs to the user it is done as, and a user may not what it may not',
    needs: ['isolates', 'user:root'],
    run: (subject) =>
      withFiles(subject, async ({ files, write }) => {
        const mine = await write('mine', 'x')
        const roots = await write('roots', 'x', { user: 'root', mode: 0o600 })
        ensureSame([mine.owner, mine.group, roots.owner, roots.group], ['user', 'user', 'root', 'root'], 'the owners')
        await ensureRejects(files.read('roots'), ['denied'])
        await ensureRejects(write('/etc/passwd', 'x'), ['denied'])
        const archive = await gather(await files.pack('.', { user: 'root' }))
        await ensureRejects(files.unpack('/etc/new', pieces(archive)), ['denied'])
        await files.unpack('unpacked', pieces(archive))
        ensureSame((await files.stat('unpacked/roots'))?.owner, 'user', 'who owns what was unpacked')
        return 'each their own'
      }),
  },
  {
    id: 'files/no-runs',
    name: 'operations on files are no runs: they are not counted, and no receipt tells of them as such',
    needs: ['engine'],
    run: (subject) =>
      withFiles(subject, async ({ sandbox, write }) => {
        await write('a', 'x')
        const [usage, receipt] = [await sandbox.usage?.(), await sandbox.receipt?.()]
        ensureSame([usage?.runs ?? 0, receipt?.runs.length ?? 0], [0, 0], 'the runs')
        return 'none'
      }),
  },
]
