import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, linkSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { FileFailure } from '../../src/channel/file-worker-replies.js'
import { chunks, gather, openBench } from './file-worker.js'

const [EPERM, EINVAL, EISDIR, EOPNOTSUPP] = [1, 22, 21, 95]
const isRoot = process.getuid?.() === 0

/** Names over 100 and 255 bytes, bytes that are no UTF-8, links, times with nanoseconds, before 1970, and a folder that forbids writing. */
function makeOddTree(folder: string): void {
  const script = `
import os,sys
r=sys.argv[1].encode(); os.makedirs(r); os.chdir(r)
os.makedirs(b'ro/in'); open(b'ro/f','w').write('x'*1000)
d=b'/'.join([b'n'*90]*4); os.makedirs(d); open(d+b'/'+b'l'*200,'w').write('long')
open(b'bad\\xff\\nname','w').write('bytes'); open(b'p'*99+b'/' if 0 else b'q'*100,'w').close(); open(b'empty','w').close()
os.symlink('t'*150,'longlink'); os.symlink('../../outside','link'); os.mkfifo('fifo')
os.link('ro/f','hard'); os.utime('empty',ns=(5,-1500000000)); os.utime(b'hard',ns=(5,1234567890123456789))
os.chmod('ro/f',0o4751); os.chmod('ro',0o555); os.utime('ro',ns=(0,1111111111000000007))`
  const made = spawnSync('/usr/bin/python3', ['-c', script, folder], { encoding: 'utf8' })
  if (made.status !== 0) throw new Error(made.stderr)
}

/** Everything that a copy of the tree must have in common with it. */
function digest(folder: string, modeMask = 0o7777): string {
  const script = `
import os,sys,hashlib
r=sys.argv[1].encode(); m=int(sys.argv[2]); out=[]
for d,ds,fs in os.walk(r):
  for n in ds+fs:
    p=os.path.join(d,n); s=os.lstat(p); k=s.st_mode>>12
    c=os.readlink(p) if k==10 else hashlib.sha256(open(p,'rb').read()).hexdigest() if k==8 else ''
    out.append((os.path.relpath(p,r),k,(s.st_mode&m) if k!=10 else 0,s.st_mtime_ns,s.st_nlink if k==8 else 0,c))
for x in sorted(out): print(x)`
  return spawnSync('/usr/bin/python3', ['-c', script, folder, String(modeMask)], { encoding: 'utf8' }).stdout
}

const failure = async (act: Promise<unknown>): Promise<[number, string]> => {
  const error: unknown = await act.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof FileFailure)) throw new Error(`no failure but ${String(error)}`)
  return [error.errno, error.text]
}
const tar = (...args: string[]): Buffer => {
  const ran = spawnSync('tar', args, { maxBuffer: 1 << 28 })
  if (ran.status !== 0) throw new Error(ran.stderr.toString())
  return ran.stdout
}

it('equal trees give equal archives, which GNU tar unpacks to the same tree', async () => {
  await using bench = openBench()
  makeOddTree(`${bench.folder}/a`)
  makeOddTree(`${bench.folder}/b`)
  for (const name of ['a', 'b']) spawnSync('sh', ['-c', `find ${bench.folder}/${name} -depth -newermt 2020-01-01 -exec touch -h -d @1700000000 {} +`])
  const packed = await gather(bench.worker.pack(bench.path('a')))
  expect(createHash('sha256').update(packed).digest('hex')).toBe(
    createHash('sha256')
      .update(await gather(bench.worker.pack(bench.path('b'))))
      .digest('hex'),
  )
  writeFileSync(`${bench.folder}/a.tar`, packed)
  expect(tar('-tvf', `${bench.folder}/a.tar`).toString()).toContain('link to')
  mkdirSync(`${bench.folder}/out`)
  tar('-xpf', `${bench.folder}/a.tar`, '-C', `${bench.folder}/out`)
  expect(digest(`${bench.folder}/out`)).toBe(digest(`${bench.folder}/a`))
})

it('what was packed is unpacked to the same tree, without set-id bits', async () => {
  await using bench = openBench()
  makeOddTree(`${bench.folder}/a`)
  await using other = openBench()
  const count = await bench.worker.unpack(bench.path('deep/b'), other.worker.pack(bench.path('a')))
  expect(count).toBe(16)
  expect(digest(`${bench.folder}/deep/b`)).toBe(digest(`${bench.folder}/a`, 0o1777))
  expect(lstatSync(`${bench.folder}/deep/b/ro`).mode & 0o7777).toBe(0o555)
})

it.each(['gnu', 'pax', 'ustar'])('an archive of GNU tar in %s format is unpacked', async (format) => {
  await using bench = openBench()
  makeOddTree(`${bench.folder}/a`)
  if (format === 'ustar') {
    spawnSync('sh', ['-c', `cd ${bench.folder}/a && rm -rf nnn* longlink bad* && touch -d @5 empty`])
  }
  const archive = tar('-c', `--format=${format}`, '-C', `${bench.folder}/a`, '.')
  await bench.worker.unpack(bench.path('b'), chunks(archive))
  const times = (text: string): string => (format === 'pax' ? text : text.replaceAll(/\d{9}(?=, \d+, )/g, '0').replaceAll(/-\d+(?=, \d+, )/g, '0'))
  expect(times(digest(`${bench.folder}/b`, 0o1777))).toBe(times(digest(`${bench.folder}/a`, 0o1777)))
})

it('a file of 9 GiB has its size in a pax record', async () => {
  await using bench = openBench({ under: '/dev/shm' })
  mkdirSync(`${bench.folder}/a`)
  spawnSync('truncate', ['-s', '9663676416', `${bench.folder}/a/large`])
  const packing = bench.worker.pack(bench.path('a'))
  const first = Buffer.from((await packing.next()).value as Uint8Array)
  expect(first.toString('latin1')).toContain(' size=9663676416\n')
  await packing.return({ count: 0, isIncomplete: true })
})

/** One header and its content, as a hostile writer would make it. */
function entry({ name, type = '0', link = '', content = '' }: { name: string; type?: string; link?: string; content?: string }): Buffer {
  const header = Buffer.alloc(512)
  header.write(name, 0, 'latin1')
  header.write('0004755\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124)
  header.write('00000000000\0', 136)
  header.write('        ', 148)
  header.write(type, 156)
  header.write(link, 157, 'latin1')
  header.write('ustar\x0000', 257, 'latin1')
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  )
  const body = Buffer.alloc(Math.ceil(content.length / 512) * 512)
  body.write(content, 'latin1')
  return Buffer.concat([header, body])
}
const end = Buffer.alloc(1024)

it.each([
  ['an absolute name', [entry({ name: '/tmp/evil', content: 'x' })], EPERM, '/tmp/evil'],
  ['a name that leads up', [entry({ name: 'a/../../evil', content: 'x' })], EPERM, 'a/../../evil'],
  ['a hard link that leads up', [entry({ name: 'x', type: '1', link: '../secret' })], EPERM, 'unpack x'],
  ['a hard link that is absolute', [entry({ name: 'x', type: '1', link: '/etc/passwd' })], EPERM, 'unpack x'],
  ['a file through a link', [entry({ name: 'l', type: '2', link: '..' }), entry({ name: 'l/evil', content: 'x' })], 20, 'unpack l/evil'],
  ['a hard link through a link', [entry({ name: 'l', type: '2', link: '..' }), entry({ name: 'x', type: '1', link: 'l/secret' })], 20, 'unpack x'],
  ['a device', [entry({ name: 'dev', type: '3' })], EOPNOTSUPP, 'type 0x33: dev'],
  ['a sparse file', [entry({ name: 's', type: 'S' })], EOPNOTSUPP, 'type 0x53: s'],
  ['a file in the place of the folder', [entry({ name: './', content: '' }), entry({ name: '.', type: '2', link: 'x' })], EISDIR, 'unpack .'],
  ['no archive', [Buffer.alloc(2048, 'x')], EINVAL, 'is none'],
  ['half an archive', [entry({ name: 'a', content: 'x'.repeat(600) }).subarray(0, 1000)], EINVAL, 'ends early'],
] as const)('%s is refused and named, and nothing lands outside', async (_, archive, errno, text) => {
  await using bench = openBench()
  writeFileSync(`${bench.folder}/secret`, 'secret')
  const [told, words] = await failure(bench.worker.unpack(bench.path('in'), chunks(...archive, end)))
  expect([told, words]).toEqual([errno, expect.stringContaining(text)])
  expect(readdirSync(bench.folder).sort()).toEqual(['in', 'secret'])
  expect([existsSync('/tmp/evil'), readFileSync(`${bench.folder}/secret`, 'utf8')]).toEqual([false, 'secret'])
  expect((await bench.worker.stat(bench.path('secret'))).size).toBe(6)
})

it('what is there is replaced, never written through', async () => {
  await using bench = openBench()
  mkdirSync(`${bench.folder}/in`)
  writeFileSync(`${bench.folder}/secret`, 'secret')
  symlinkSync('../secret', `${bench.folder}/in/l`)
  linkSync(`${bench.folder}/secret`, `${bench.folder}/in/h`)
  await bench.worker.unpack(bench.path('in'), chunks(entry({ name: 'l', content: 'new' }), entry({ name: 'h', content: 'new' }), end))
  expect(readFileSync(`${bench.folder}/secret`, 'utf8')).toBe('secret')
  expect([readFileSync(`${bench.folder}/in/l`, 'utf8'), lstatSync(`${bench.folder}/in/l`).mode & 0o7777]).toEqual(['new', 0o755])
})

it.runIf(isRoot)('removed paths and opaque folders of the layers are packed as such and applied, whatever they are called', async () => {
  await using bench = openBench()
  const layers = `${bench.folder}/layers`
  spawnSync('sh', [
    '-c',
    `mkdir -p ${layers}/1/opaque ${layers}/1/d; cd ${layers}/1; mknod d/gone c 0 0; for name in .wh..opq .wh. .wh.stays .wh..wh..opq; do mknod d/$name c 0 0; done; touch opaque/new .wh.kept .wh..wh..opq;
     setfattr -n trusted.overlay.opaque -v y opaque || /usr/bin/python3 -c "import os; os.setxattr('opaque','trusted.overlay.opaque',b'y')"`,
  ])
  await using inside = openBench({ layers })
  spawnSync('sh', [
    '-c',
    `mkdir -p ${bench.folder}/t/opaque/old ${bench.folder}/t/d/gone/deep ${bench.folder}/t/d/.wh..opq; cd ${bench.folder}/t/d; touch .wh. .wh.stays .wh..wh..opq ${bench.folder}/t/kept ${bench.folder}/t/d/stays`,
  ])
  await bench.worker.unpack(bench.path('t'), inside.worker.pack(Buffer.from('1'), { inLayers: true }), { marks: true, keepOwner: true })
  const left = spawnSync('find', ['.', '-mindepth', '1'], { cwd: `${bench.folder}/t`, encoding: 'utf8' })
    .stdout.trim()
    .split('\n')
    .sort()
  expect(left).toEqual(['./.wh..wh..opq', './.wh.kept', './d', './d/stays', './kept', './opaque', './opaque/new'])
  expect((await failure(bench.worker.pack(Buffer.from('1'), { inLayers: true }).next()))[0]).toBe(EOPNOTSUPP)
})

it('a file takes the place of a folder with all in it only where marks are applied', async () => {
  await using bench = openBench()
  spawnSync('sh', [
    '-c',
    `mkdir -p ${bench.folder}/a ${bench.folder}/t/f/deep ${bench.folder}/t/l/deep; cd ${bench.folder}; echo x > a/f; ln -s f a/l; touch t/f/deep/g`,
  ])
  const packed = (): AsyncIterable<Uint8Array> => bench.worker.pack(bench.path('a'))
  const archive = await gather(packed())
  expect((await failure(bench.worker.unpack(bench.path('t'), chunks(archive))))[0]).toBe(EISDIR)
  await bench.worker.unpack(bench.path('t'), chunks(archive), { marks: true })
  expect([readFileSync(`${bench.folder}/t/f`, 'utf8'), readlinkSync(`${bench.folder}/t/l`)]).toEqual(['x\n', 'f'])
})

it('a file that shrinks while it is packed leaves an archive that is whole', async () => {
  await using bench = openBench()
  mkdirSync(`${bench.folder}/a`)
  writeFileSync(`${bench.folder}/a/f`, Buffer.alloc(8 << 20, 1))
  symlinkSync('f', `${bench.folder}/a/z`)
  const packing = bench.worker.pack(bench.path('a'))
  const parts = [(await packing.next()).value as Uint8Array]
  spawnSync('truncate', ['-s', '0', `${bench.folder}/a/f`])
  for await (const part of packing) parts.push(part)
  writeFileSync(`${bench.folder}/a.tar`, Buffer.concat(parts))
  expect(tar('-tf', `${bench.folder}/a.tar`).toString()).toBe('./\nf\nz\n')
  tar('-xf', `${bench.folder}/a.tar`, '-C', bench.folder)
  expect([lstatSync(`${bench.folder}/f`).size, readlinkSync(`${bench.folder}/z`)]).toEqual([8 << 20, 'f'])
})
