import { createHash } from 'node:crypto'
import { existsSync, linkSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { FileFailure } from '../../src/channel/file-worker-replies.js'
import { chunks, gather, listed, openBench } from './file-worker.js'

const [ENOENT, EACCES, EEXIST, EISDIR, EINVAL, ENXIO, ENOTEMPTY, ELOOP] = [2, 13, 17, 21, 22, 6, 39, 40]
const isRoot = process.getuid?.() === 0

const failure = async (act: Promise<unknown>): Promise<[number, string]> => {
  const error: unknown = await act.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof FileFailure)) throw new Error(`no failure but ${String(error)}`)
  return [error.errno, error.text]
}
const names = (entries: readonly { readonly name: Uint8Array }[]): string[] => entries.map(({ name }) => Buffer.from(name).toString('latin1'))

describe('reading and writing', () => {
  it('what is written is read back, with the folders above made and the mode given', async () => {
    await using bench = openBench()
    const content = Buffer.alloc(300_000, 'abc')
    const entry = await bench.worker.write(bench.path('a/b/c.txt'), chunks(content.subarray(0, 7), content.subarray(7)), { mode: 0o640 })
    expect([entry.type, entry.size, entry.mode]).toEqual(['file', 300_000, 0o640])
    expect(statSync(`${bench.folder}/a/b`).mode & 0o7777).toBe(0o755)
    const opened = await bench.worker.read(bench.path('a/b/c.txt'))
    expect(opened.entry.size).toBe(300_000)
    expect((await gather(opened.bytes)).equals(content)).toBe(true)
    const part = await bench.worker.read(bench.path('a/b/c.txt'), { offset: 299_998, length: 10 })
    expect((await gather(part.bytes)).toString()).toBe('bc')
    expect(bench.worker.isIdle).toBe(true)
  })

  it('a file that is there keeps its mode, is cut, appended to or refused', async () => {
    await using bench = openBench()
    writeFileSync(`${bench.folder}/f`, 'long before', { mode: 0o600 })
    expect((await bench.worker.write(bench.path('f'), chunks('new'))).mode).toBe(0o600)
    await bench.worker.write(bench.path('f'), chunks('+'), { append: true })
    expect(readFileSync(`${bench.folder}/f`, 'utf8')).toBe('new+')
    expect(await failure(bench.worker.write(bench.path('f'), chunks('x'), { exclusive: true }))).toEqual([EEXIST, `open ${bench.folder}/f`])
    expect(readFileSync(`${bench.folder}/f`, 'utf8')).toBe('new+')
  })

  it('an atomic write replaces all at once, through a link, and can append or refuse', async () => {
    await using bench = openBench()
    writeFileSync(`${bench.folder}/real`, 'old', { mode: 0o604 })
    symlinkSync('real', `${bench.folder}/link`)
    const inode = statSync(`${bench.folder}/real`).ino
    const entry = await bench.worker.write(bench.path('link'), chunks('new'), { atomic: true })
    expect([entry.mode, entry.size]).toEqual([0o604, 3])
    expect(readlinkSync(`${bench.folder}/link`)).toBe('real')
    expect(statSync(`${bench.folder}/real`).ino).not.toBe(inode)
    await bench.worker.write(bench.path('real'), chunks('er'), { atomic: true, append: true })
    expect(readFileSync(`${bench.folder}/real`, 'utf8')).toBe('newer')
    expect((await failure(bench.worker.write(bench.path('real'), chunks('x'), { atomic: true, exclusive: true })))[0]).toBe(EEXIST)
    await bench.worker.write(bench.path('deep/er'), chunks('x'), { atomic: true, exclusive: true })
    expect(readdirSync(bench.folder).sort()).toEqual(['deep', 'link', 'real'])
  })

  it('an atomic write that is cut off leaves nothing, whether its input ends or it is killed', async () => {
    for (const end of ['input', 'kill'] as const) {
      await using bench = openBench()
      let half = (): void => undefined
      const isHalf = new Promise<void>((resolve) => (half = resolve))
      const content = async function* (): AsyncGenerator<Uint8Array> {
        yield Buffer.alloc(1 << 20)
        half()
        await new Promise(() => undefined)
      }
      const writing = bench.worker.write(bench.path('f'), content(), { atomic: true }).catch((error: unknown) => error)
      await isHalf
      await new Promise((resolve) => setTimeout(resolve, 100))
      if (end === 'input') await bench.run.endInput()
      else bench.child.kill('SIGKILL')
      await bench.run.exited
      expect(readdirSync(bench.folder)).toEqual([])
      expect(await writing).toMatchObject({ code: 'broken' })
    }
  })

  it.runIf(isRoot)('a full disk is told, and an atomic write leaves nothing and the old', async () => {
    await using bench = openBench()
    mkdirSync(`${bench.folder}/disk`)
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', `${bench.folder}/disk`]).status).toBe(0)
    try {
      await bench.worker.write(bench.path('disk/f'), chunks('old'))
      const large = async function* (): AsyncGenerator<Uint8Array> {
        for (let count = 0; count < 64; count += 1) yield await Promise.resolve(Buffer.alloc(65_536))
      }
      expect(await failure(bench.worker.write(bench.path('disk/f'), large(), { atomic: true }))).toEqual([28, `write ${bench.folder}/disk/f`])
      expect(readdirSync(`${bench.folder}/disk`)).toEqual(['f'])
      expect(readFileSync(`${bench.folder}/disk/f`, 'utf8')).toBe('old')
      expect((await failure(bench.worker.write(bench.path('disk/g'), large())))[0]).toBe(28)
      expect((await bench.worker.stat(bench.path('disk/f'))).size).toBe(3)
    } finally {
      spawnSync('umount', [`${bench.folder}/disk`])
    }
  })

  it('only files are opened: folders, FIFOs, sockets and devices are refused without touching them', async () => {
    await using bench = openBench()
    spawnSync('mkfifo', [`${bench.folder}/fifo`])
    symlinkSync('loop', `${bench.folder}/loop`)
    expect(await failure(bench.worker.read(bench.path('')))).toEqual([EISDIR, `is a folder: ${bench.folder}`])
    expect(await failure(bench.worker.read(bench.path('fifo')))).toEqual([ENXIO, `is a FIFO: ${bench.folder}/fifo`])
    expect(await failure(bench.worker.read(Buffer.from('/dev/zero')))).toEqual([ENXIO, 'is a device: /dev/zero'])
    expect(await failure(bench.worker.write(bench.path('fifo'), chunks('x')))).toEqual([ENXIO, `is a FIFO: ${bench.folder}/fifo`])
    expect(await failure(bench.worker.write(Buffer.from('/dev/null'), chunks('x'), { atomic: true }))).toEqual([ENXIO, 'is a device: /dev/null'])
    expect((await failure(bench.worker.read(bench.path('loop'))))[0]).toBe(ELOOP)
    expect((await failure(bench.worker.write(bench.path('loop'), chunks('x'), { atomic: true })))[0]).toBe(ELOOP)
    expect((await failure(bench.worker.read(bench.path('nothing'))))[0]).toBe(ENOENT)
  })

  it('a file of /proc, which has no size, is read to its end', async () => {
    await using bench = openBench()
    const { entry, bytes } = await bench.worker.read(Buffer.from('/proc/self/status'))
    expect(entry.size).toBe(0)
    expect((await gather(bytes)).toString()).toMatch(/^Name:/)
  })

  it.runIf(isRoot)('an ordinary user is refused what is not theirs', async () => {
    await using bench = openBench({ uid: 65_534 })
    writeFileSync(`${bench.folder}/secret`, 'x', { mode: 0 })
    expect((await failure(bench.worker.read(bench.path('secret'))))[0]).toBe(EACCES)
    spawnSync('chmod', ['755', bench.folder])
    expect((await failure(bench.worker.read(bench.path('secret'))))[0]).toBe(EACCES)
    expect((await failure(bench.worker.write(bench.path('secret'), chunks('x'), { atomic: true })))[0]).toBe(EACCES)
    expect((await failure(bench.worker.write(bench.path('new/file'), chunks('x'))))[0]).toBe(EACCES)
  })
})

describe('the tree', () => {
  it('stat tells of a link itself, or of where it leads', async () => {
    await using bench = openBench()
    symlinkSync('nowhere', `${bench.folder}/l`)
    const entry = await bench.worker.stat(bench.path('l'))
    expect([entry.type, Buffer.from(entry.target ?? '').toString()]).toEqual(['link', 'nowhere'])
    expect((await failure(bench.worker.stat(bench.path('l'), { follow: true })))[0]).toBe(ENOENT)
    const { mtimeNs, ino } = lstatSync(`${bench.folder}/l`, { bigint: true })
    expect([entry.modifiedNs, entry.ino]).toEqual([mtimeNs, ino])
  })

  it('mkdir makes all above, is quiet about a folder and refuses a file', async () => {
    await using bench = openBench()
    expect((await bench.worker.mkdir(bench.path('a/b'), { mode: 0o2750 })).mode).toBe(0o2750)
    expect((await bench.worker.mkdir(bench.path('a/b/'))).mode).toBe(0o2750)
    writeFileSync(`${bench.folder}/f`, '')
    expect(await failure(bench.worker.mkdir(bench.path('f')))).toEqual([EEXIST, `mkdir ${bench.folder}/f`])
  })

  it('move renames, replaces or refuses; copy makes a second tree with links as links', async () => {
    await using bench = openBench()
    mkdirSync(`${bench.folder}/a/b`, { recursive: true })
    writeFileSync(`${bench.folder}/a/b/f`, 'content', { mode: 0o751 })
    symlinkSync('/etc/passwd', `${bench.folder}/a/l`)
    spawnSync('mkfifo', [`${bench.folder}/a/p`])
    spawnSync('chmod', ['555', `${bench.folder}/a/b`])
    await bench.worker.copy(bench.path('a'), bench.path('c'))
    expect(readFileSync(`${bench.folder}/c/b/f`, 'utf8')).toBe('content')
    expect([statSync(`${bench.folder}/c/b/f`).mode & 0o777, statSync(`${bench.folder}/c/b`).mode & 0o777]).toEqual([0o751, 0o555])
    expect(readlinkSync(`${bench.folder}/c/l`)).toBe('/etc/passwd')
    expect(lstatSync(`${bench.folder}/c/p`).isFIFO()).toBe(true)
    expect((await failure(bench.worker.copy(bench.path('a'), bench.path('a/b/x'))))[0]).toBe(EINVAL)
    expect((await failure(bench.worker.copy(bench.path('a'), bench.path('c'))))[0]).toBe(ENOTEMPTY)
    expect((await bench.worker.copy(bench.path('a/b/f'), bench.path('g'))).size).toBe(7)
    expect((await failure(bench.worker.copy(bench.path('a/b/f'), bench.path('g'), { exclusive: true })))[0]).toBe(EEXIST)
    expect((await failure(bench.worker.move(bench.path('a'), bench.path('c'), { exclusive: true })))[0]).toBe(EEXIST)
    await bench.worker.move(bench.path('a'), bench.path('d'))
    expect(readdirSync(bench.folder).sort()).toEqual(['c', 'd', 'g'])
  })

  it('a move to another file system is a copy that keeps times, and a removal', async () => {
    await using bench = openBench()
    await using other = openBench()
    const shm = `/dev/shm/${other.folder.split('/').at(-1)}`
    mkdirSync(`${bench.folder}/a`)
    writeFileSync(`${bench.folder}/a/f`, 'x')
    spawnSync('touch', ['-d', '2001-02-03 04:05:06.789', `${bench.folder}/a/f`, `${bench.folder}/a`])
    try {
      await bench.worker.move(bench.path('a'), Buffer.from(shm))
      expect(existsSync(`${bench.folder}/a`)).toBe(false)
      expect([statSync(`${shm}/f`).mtime.getUTCFullYear(), statSync(shm).mtime.getUTCFullYear()]).toEqual([2001, 2001])
    } finally {
      expect(await bench.worker.remove(Buffer.from(shm), { recursive: true })).toBe(true)
    }
  })

  it('remove takes one thing, or with all in it, and says when there was nothing', async () => {
    await using bench = openBench()
    mkdirSync(`${bench.folder}/a/b`, { recursive: true })
    writeFileSync(`${bench.folder}/keep`, '')
    symlinkSync('../keep', `${bench.folder}/a/l`)
    expect((await failure(bench.worker.remove(bench.path('a'))))[0]).toBe(ENOTEMPTY)
    expect(await bench.worker.remove(bench.path('a'), { recursive: true })).toBe(true)
    expect(await bench.worker.remove(bench.path('a'), { recursive: true })).toBe(false)
    expect(await bench.worker.remove(bench.path('keep/below'))).toBe(false)
    expect(await bench.worker.remove(bench.path('keep'))).toBe(true)
    expect((await failure(bench.worker.remove(Buffer.from('/'), { recursive: true })))[0]).toBe(16)
  })

  it('symlink and chmod', async () => {
    await using bench = openBench()
    await bench.worker.symlink(Buffer.from('f'), bench.path('l'))
    writeFileSync(`${bench.folder}/f`, '')
    expect((await bench.worker.chmod(bench.path('l'), 0o4711)).mode).toBe(0o4711)
    expect((await failure(bench.worker.symlink(Buffer.from('f'), bench.path('l'))))[0]).toBe(EEXIST)
  })
})

describe('listing', () => {
  it('is in the order of names, to the depth asked for, with any bytes in names, and does not enter links', async () => {
    await using bench = openBench()
    mkdirSync(`${bench.folder}/b/.d/e`, { recursive: true })
    for (const name of ['a\nb', 'Z', 'b/x', '.h', Buffer.from([0x66, 0xff])]) {
      writeFileSync(Buffer.concat([Buffer.from(`${bench.folder}/`), Buffer.from(name)]), '')
    }
    symlinkSync('.', `${bench.folder}/b/loop`)
    const all = ['.h', 'Z', 'a\nb', 'b', 'b/.d', 'b/.d/e', 'b/loop', 'b/x', 'f\xff']
    expect(names(await listed(bench.worker.list(bench.path(''))))).toEqual(all)
    expect(names(await listed(bench.worker.list(bench.path(''), { hidden: false })))).toEqual(['Z', 'a\nb', 'b', 'b/loop', 'b/x', 'f\xff'])
    expect(names(await listed(bench.worker.list(bench.path(''), { depth: 1 })))).toEqual(['.h', 'Z', 'a\nb', 'b', 'f\xff'])
    expect(names(await listed(bench.worker.list(bench.path(''), { depth: 0 })))).toEqual([''])
  })

  it('with hashes they are those of the contents', async () => {
    await using bench = openBench()
    for (const length of [0, 1, 55, 56, 63, 64, 65, 200_000]) writeFileSync(`${bench.folder}/${length}`, Buffer.alloc(length, 7))
    for (const entry of await listed(bench.worker.list(bench.path(''), { hash: true }))) {
      const digest = createHash('sha256').update(Buffer.alloc(entry.size, 7)).digest('hex')
      expect(Buffer.from(entry.hash ?? '').toString('hex')).toBe(digest)
    }
  })

  it.runIf(isRoot)('what cannot be looked into is told as incomplete', async () => {
    await using bench = openBench({ uid: 65_534 })
    spawnSync('chmod', ['755', bench.folder])
    mkdirSync(`${bench.folder}/closed/in`, { recursive: true })
    spawnSync('chmod', ['700', `${bench.folder}/closed`])
    const listing = bench.worker.list(bench.path(''))
    expect(await listing.next()).toMatchObject({ done: false, value: { type: 'folder' } })
    expect(await listing.next()).toEqual({ done: true, value: { count: 1, isIncomplete: true } })
  })

  it('a folder with more names than are held at once is told whole and in order', async () => {
    await using bench = openBench({ under: '/dev/shm' })
    const count = 30_000
    const script = `import os,sys\nfor i in range(${count}): open(sys.argv[1]+'/'+('%%05d' %% (i*7919%%${count})).rjust(120,'n'),'w').close()`.replaceAll(
      '%%',
      '%',
    )
    expect(spawnSync('/usr/bin/python3', ['-c', script, bench.folder]).status).toBe(0)
    const seen = names(await listed(bench.worker.list(bench.path(''))))
    expect(seen.length).toBe(count)
    expect(seen.every((name, index) => index === 0 || name > (seen[index - 1] ?? ''))).toBe(true)
    expect(await bench.worker.remove(bench.path(''), { recursive: true })).toBe(true)
  }, 300_000)

  it('a tree of 100,000 levels is listed as far as its names go, and removed, in little memory', async () => {
    await using bench = openBench({ under: '/dev/shm' })
    const script = `import os,sys\nos.chdir(sys.argv[1])\nfor i in range(100000):\n  os.mkdir('d')\n  os.chdir('d')`
    expect(spawnSync('/usr/bin/python3', ['-c', script, bench.folder]).status).toBe(0)
    let deepest = 0
    const listing = (async () => {
      for await (const { name } of bench.worker.list(bench.path(''))) deepest = name.length
    })()
    expect((await failure(listing))[0]).toBe(36)
    expect(deepest).toBeGreaterThan(16_380)
    expect(await bench.worker.remove(bench.path('d'), { recursive: true })).toBe(true)
    expect(readdirSync(bench.folder)).toEqual([])
  }, 600_000)

  it('hard links and files keep their identity', async () => {
    await using bench = openBench()
    writeFileSync(`${bench.folder}/a`, '')
    linkSync(`${bench.folder}/a`, `${bench.folder}/b`)
    const [a, b] = await listed(bench.worker.list(bench.path('')))
    expect([a?.ino, a?.dev]).toEqual([b?.ino, b?.dev])
  })
})

describe('the worker itself', () => {
  const u32 = (...values: number[]): Buffer => Buffer.concat(values.map((value) => Buffer.from(Uint32Array.of(value).buffer)))
  const frame = (type: number, payload: Buffer): Buffer => Buffer.concat([u32(payload.length, type), payload])
  const str = (text: string): Buffer => Buffer.concat([u32(Buffer.byteLength(text)), Buffer.from(text)])

  it.each([
    ['unknown frame type', frame(0x10, Buffer.alloc(0))],
    ['reserved field is not zero', u32(0, 0x10f)],
    ['wrong frame length', u32(2 ** 20 + 1, 0x40)],
    ['wrong frame length', u32(65_537, 0x03)],
    ['request ends early', frame(1, u32(0))],
    ['request is too long', frame(0x0f, u32(0))],
    ['unknown flag', frame(1, Buffer.concat([u32(4), str('/')]))],
    ['wrong mode', frame(0x0a, Buffer.concat([u32(0o10000), str('/')]))],
    ['path is not absolute', frame(1, Buffer.concat([u32(0), str('etc')]))],
    ['path leaves the layers', frame(0x0d, Buffer.concat([u32(8), str('a/../..')]))],
    ['NUL in a text', frame(1, Buffer.concat([u32(0), str('/a\0b')]))],
    ['text is too long', frame(1, Buffer.concat([u32(0), str(`/${'x'.repeat(4095)}`)]))],
    ['content out of turn', frame(0x40, Buffer.from('x'))],
    ['request amid content', Buffer.concat([frame(3, Buffer.concat([u32(0, 0o600), str('/nowhere/x/\n')])), frame(0x0f, Buffer.alloc(0))])],
  ])('ends with 70 and one line: %s', async (line, bytes) => {
    await using bench = openBench({ uid: isRoot ? 65_534 : undefined })
    let said = ''
    bench.child.stderr?.on('data', (text: Buffer) => (said += text.toString()))
    bench.child.stdout?.resume()
    await bench.run.write(bytes)
    expect(await bench.run.exited).toEqual({ code: 70, signal: null })
    expect(said).toBe(`files: ${line}\n`)
  })

  it('after everything it has leaked nothing, by the word of its sanitizers', async () => {
    await using bench = openBench()
    const { worker } = bench
    await worker.write(bench.path('a/b/f'), chunks('text'), { atomic: true })
    await worker.copy(bench.path('a'), bench.path('c'))
    await listed(worker.list(bench.path(''), { hash: true }))
    await worker.search(bench.path(''), { pattern: Buffer.from('T.xt'), most: 9, regex: true, ignoreCase: true })
    const archive = await gather(worker.pack(bench.path('a')))
    expect(await worker.unpack(bench.path('d'), chunks(archive))).toBe(3)
    expect((await failure(worker.unpack(bench.path('e'), chunks(archive.subarray(0, 700)))))[0]).toBe(EINVAL)
    expect((await failure(worker.read(bench.path('none'))))[0]).toBe(ENOENT)
    await worker.processes()
    await worker.remove(bench.path('c'), { recursive: true })
    const events = await worker.watch(bench.path(''), { recursive: true })
    writeFileSync(`${bench.folder}/new`, '')
    expect((await events.next()).value.kind).toBe('created')
    let said = ''
    bench.child.stderr?.on('data', (text: Buffer) => (said += text.toString()))
    await bench.run.endInput()
    await expect(
      events
        .next()
        .then(() => events.next())
        .then(() => events.next()),
    ).rejects.toThrow()
    expect(await bench.run.exited).toEqual({ code: 0, signal: null })
    expect(said).toBe('')
  })
})
