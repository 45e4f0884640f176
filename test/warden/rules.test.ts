import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hasBwrap, singleIdCell } from './cells.js'
import { filterOf, Peer, rulesPayload, TYPE, WARDEN } from './frames.js'
import { skipGroup, testUnless } from '../unless.js'

type Rules = Parameters<typeof rulesPayload>[0]

const python = '/usr/bin/python3'
const versionOf = 'import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1))'
const version = Number(spawnSync(python, ['-c', versionOf], { encoding: 'utf8' }).stdout)
const noLandlock = !(version >= 2) && 'this kernel has no Landlock of version 2'

const loader = process.arch === 'x64' ? '/lib64/ld-linux-x86-64.so.2' : '/lib/ld-linux-aarch64.so.1'
const programs = ['sh', 'cat', 'ls', 'mv', 'ln', 'cp', 'chmod'].map((name) => realpathSync(`/usr/bin/${name}`))
const [execute, read, move] = [1, 2, 4]
const listed: Rules = [...programs, loader].map((path) => [execute | read, path])
const common: Rules = [...listed, [read, '/usr/lib'], [read, '/lib64'], [read, '/etc'], [read | move, '/dev']]

async function saying(rules: Rules | undefined, script: string, cwd = '/'): Promise<string> {
  await using peer = new Peer()
  if (rules) peer.send({ type: TYPE.RULES, payload: rulesPayload(rules) })
  const { stdout, stderr } = await peer.run(1, { argv: ['sh', '-c', `exec 2>&1; ${script}`], cwd })
  return Buffer.concat([stdout, stderr]).toString()
}

describe('under rules', () => {
  skipGroup(noLandlock)
  let folder = ''
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'warden-rules-'))
    for (const name of ['a', 'b']) mkdirSync(join(folder, name))
    writeFileSync(join(folder, 'a/file'), 'text\n')
    writeFileSync(join(folder, 'secret'), 'secret\n')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  test('what is listed runs, what is not is refused: by name, by its loader, as a file to read, and as a copy', async () => {
    const attempts = `ls a; /usr/bin/id; ${loader} /usr/bin/id; cat /usr/bin/id; cp /usr/bin/id copy; chmod 755 ready; ./ready; cat secret`
    copyFileSync('/usr/bin/id', join(folder, 'ready'))
    const rules: Rules = [...common, [read, join(folder, 'a')]]
    expect((await saying(rules, attempts, folder)).split('\n').map((line) => line.replace(/^(sh|.*ld-linux[^:]*): /, ''))).toEqual([
      'file',
      '1: /usr/bin/id: Permission denied',
      expect.stringMatching(/^(\/usr\/bin\/id: )?(error while loading shared libraries: )?\/usr\/bin\/id: cannot open shared object file: Permission denied$/),
      'cat: /usr/bin/id: Permission denied',
      "cp: cannot open '/usr/bin/id' for reading: Permission denied",
      '1: ./ready: Permission denied',
      'cat: secret: Permission denied',
      '',
    ])
    const freely = await saying(undefined, attempts, folder)
    expect([freely.includes('denied'), freely.match(/uid=\d+/g)?.length, freely.endsWith('secret\n')]).toEqual([false, 3, true])
  })

  test('a program that may be read but not executed is refused, and one that may be executed but not read too', async () => {
    const id = realpathSync('/usr/bin/id')
    expect(await saying([...common, [read, id]], '/usr/bin/id')).toMatch(/Permission denied/)
    expect(await saying([...common, [execute, id]], '/usr/bin/id')).toMatch(/Permission denied/)
    expect(await saying([...common, [read | execute, id]], '/usr/bin/id')).toMatch(/uid=/)
  })

  test('START of what is not listed is refused at its execve, with a gate and without', async () => {
    await using peer = new Peer()
    peer.send({ type: TYPE.RULES, payload: rulesPayload(common) })
    peer.start(1, { argv: ['id'] })
    peer.start(2, { argv: ['/usr/bin/id'], gate: true })
    await peer.takeType(TYPE.GATED, 2)
    peer.send({ type: TYPE.RELEASE, run: 2 })
    for (const run of [1, 2]) expect((await peer.takeType(TYPE.FAILED, run)).payload.subarray(0, 8)).toEqual(Buffer.from([2, 0, 0, 0, 13, 0, 0, 0]))
    expect((await peer.run(3, { argv: ['sh', '-c', 'echo control'] })).stdout.toString()).toBe('control\n')
  })

  test('no rule at all lets nothing be executed', async () => {
    await using peer = new Peer()
    peer.send({ type: TYPE.RULES, payload: rulesPayload([]) })
    peer.start(1, { argv: ['/bin/true'] })
    expect((await peer.takeType(TYPE.FAILED, 1)).payload.readUInt32LE(4)).toBe(13)
  })

  test('files move and are linked between folders where a rule says so, and nowhere else', async () => {
    const before = statSync(join(folder, 'a/file')).ino
    const script = 'ln a/file b/link; mv a/file b/file; ls b'
    expect(await saying([...common, [read | move, folder]], script, folder)).toBe('file\nlink\n')
    expect(statSync(join(folder, 'b/file')).ino).toBe(before)
    expect(await saying([...common, [read, folder]], 'ln b/link a/link; ls a', folder)).toMatch(/Invalid cross-device link\n$/)
  })

  test('folders can be listed, files made and written, whatever may be read', async () => {
    expect(await saying(common, 'ls; ls -d /root /usr; echo more >>secret && echo new >made && cat made', folder)).toBe(
      'a\nb\nsecret\n/root\n/usr\ncat: made: Permission denied\n',
    )
  })

  test('a path that is not there is skipped, and a file takes a rule for moving as one without', async () => {
    const rules: Rules = [[7, '/nowhere'], [7, '/etc/passwd/below'], [4, join(folder, 'secret')], ...common, [6, join(folder, 'a/file')]]
    expect(await saying(rules, 'cat a/file secret', folder)).toBe('text\ncat: secret: Permission denied\n')
  })

  test('every run is held to them, and what they start too', async () => {
    await using peer = new Peer()
    peer.send({ type: TYPE.RULES, payload: rulesPayload(common) })
    for (let run = 1; run <= 3; run++) {
      const said = await peer.run(run, { argv: ['sh', '-c', '(sh -c "(id) || echo refused") 2>/dev/null'] })
      expect(said.stdout.toString()).toBe('refused\n')
    }
  })

  test('a file of rules with many thousand paths is taken', async () => {
    const many: Rules = Array.from({ length: 20_000 }, (_, index) => [read, `/nowhere/${index}`])
    expect(await saying([...many, ...common], 'echo through')).toBe('through\n')
  })

  testUnless(!hasBwrap && 'bwrap is not on PATH')('they hold in a cell as well', async () => {
    await using peer = singleIdCell()
    peer.send({ type: TYPE.RULES, payload: rulesPayload([...common, [read | move, '/workspace']]) })
    const said = await peer.run(1, {
      argv: ['sh', '-c', 'echo kept >file; cat file; /usr/bin/id 2>&1; cat /usr/bin/id 2>&1'],
      uid: 1000,
      gid: 1000,
      cwd: '/workspace',
    })
    expect(said.stdout.toString()).toBe('kept\nsh: 1: /usr/bin/id: Permission denied\ncat: /usr/bin/id: Permission denied\n')
  })
})

describe('a kernel without Landlock', () => {
  const programOf = (filter: Buffer) => `import ctypes, os, sys
libc = ctypes.CDLL(None)
class Program(ctypes.Structure): _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
filter = bytes.fromhex("${filter.toString('hex')}")
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(Program(len(filter) // 8, filter))) == 0
os.execv(sys.argv[1], sys.argv[1:])`

  test.each([
    ['that never heard of it', 38],
    ['that was told not to offer it', 95],
  ])('%s ends the cell with a word of it, and without rules all is well', async (_name, errno) => {
    const command = [python, '-c', programOf(filterOf([[444, 0x00050000 | errno]])), WARDEN, '--subreaper']
    await using without = new Peer(command)
    expect((await without.run(1, { argv: ['echo', 'well'] })).stdout.toString()).toBe('well\n')
    await using peer = new Peer(command)
    peer.send({ type: TYPE.RULES, payload: rulesPayload([]) })
    peer.start(1, { argv: ['true'] })
    expect((await peer.takeType(TYPE.FATAL)).payload.toString()).toMatch(/^make file rules by Landlock, which this kernel does not offer: /)
    expect(await peer.exited).toBe(70)
  })
})
