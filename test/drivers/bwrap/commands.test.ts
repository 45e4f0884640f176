import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../../src/compose.js'
import type { Platform } from '../../../src/contract/platform.js'
import type { SpecInput, UserName } from '../../../src/contract/spec.js'
import { judgeCommands } from '../../../src/cell/judgement.js'
import { Sandbox } from '../../../src/sandbox/index.js'
import { testUnless } from '../../unless.js'

const isRoot = process.getuid?.() === 0
const attacks = readFileSync(new URL('./programs/attack-commands.py', import.meta.url), 'utf8')
let platform: Platform
let place: string
let tools: string
/** An ELF program and a library that say "ran", which no cell has. */
let given: string

beforeAll(() => {
  platform = createPlatform()
  place = mkdtempSync(join(tmpdir(), 'gbx-commands-'))
  chmodSync(place, 0o755)
  writeFileSync(join(place, 'library.c'), '#include <unistd.h>\n__attribute__((constructor)) static void run(void) { if (write(1, "ran\\n", 4)) {} }\n')
  execFileSync('gcc', ['-shared', '-fPIC', '-o', join(place, 'library.so'), join(place, 'library.c')])
  const encoded = (path: string): string => readFileSync(path).toString('base64')
  given = JSON.stringify({ program: encoded('/usr/bin/echo'), library: encoded(join(place, 'library.so')) })
  tools = mkdtempSync(join(place, 'tools-'))
  copyFileSync('/usr/bin/echo', join(tools, 'program'))
  chmodSync(join(tools, 'program'), 0o755)
  if (isRoot) for (const path of [tools, join(tools, 'program')]) chownSync(path, 1777, 1777)
})

afterAll(async () => {
  await platform[Symbol.asyncDispose]()
  rmSync(place, { recursive: true })
})

function create(spec: Partial<SpecInput>): Promise<Sandbox> {
  return Sandbox.create({ platform, limits: { time: '2m' }, ...spec })
}

async function attack(spec: Partial<SpecInput>, user: UserName): Promise<Record<string, string>> {
  await using sandbox = await create({ ...spec, user, mounts: [{ source: tools, target: '/mnt/tools', mode: 'rw' }] })
  const { stdout, stderr, outcome } = await sandbox.run(['/usr/bin/python3', '-c', attacks], { stdin: given })
  expect({ outcome, stderr }).toEqual({ outcome: { kind: 'exited', code: 0 }, stderr: '' })
  return JSON.parse(stdout) as Record<string, string>
}

const refused = 'refused 13'
const unmapped = 'failed to map segment from shared object'

/** How each way of running what is not listed fails: by EACCES where nothing else is said. */
const otherwise: Readonly<Record<string, string>> = {
  'by the loader': '/usr/bin/echo: error while loading shared libraries: /usr/bin/echo: cannot open shared object file: Permission denied',
  'planted, by the loader': `PLACE/planted: error while loading shared libraries: PLACE/planted: ${unmapped}`,
  'from memory': 'refused 38',
  'by an alias of git': "fatal: cannot exec 'echo ran': Permission denied\nfatal: while expanding alias 'x': 'echo ran': Permission denied",
  'a preloaded library': `ERROR: ld.so: object 'PLACE/library.so' from LD_PRELOAD cannot be preloaded (${unmapped}): ignored.`,
  'a library on the path': `/usr/bin/python3: error while loading shared libraries: libz.so.1: ${unmapped}`,
  'a library by dlopen': `PLACE/another.so: ${unmapped}`,
  mapped: 'refused 1',
  'on a mount, by the loader': `/mnt/tools/program: error while loading shared libraries: /mnt/tools/program: ${unmapped}`,
}

describe.each<UserName>(['user', 'root'])('what is not listed does not run for %s', (user) => {
  const reason = user === 'root' && !isRoot && 'only root can give a cell more than one id'

  testUnless(reason)('in any way that works where everything may run', async () => {
    const free = await attack({}, user)
    expect(Object.entries(free).filter(([, said]) => !/^ran$/m.test(said))).toEqual([])
    const held = await attack({ commands: ['/usr/bin/python3', 'git'] }, user)
    expect(held).toEqual(Object.fromEntries(Object.keys(free).map((name) => [name, otherwise[name] ?? refused])))
  })

  testUnless(reason)('also under a profile that allows every system call', async () => {
    const seccomp = { defaultAction: 'SCMP_ACT_ALLOW', syscalls: [{ names: ['memfd_create', 'clone3'], action: 'SCMP_ACT_ALLOW' }] }
    expect((await attack({ seccomp }, user))['from memory']).toBe('ran')
    const held = await attack({ commands: ['/usr/bin/python3', 'git'], seccomp }, user)
    expect(Object.entries(held).filter(([, said]) => /^ran$/m.test(said))).toEqual([])
    expect(held['from memory']).toBe('refused 38')
  })
})

describe('what is listed works', () => {
  test('python with what it imports, itself as a child, moving of files, and pip', async () => {
    await using sandbox = await create({ commands: ['/usr/bin/python3'] })
    const code = `
import ssl, sqlite3, ctypes, json, multiprocessing, os, subprocess, sys, tempfile, zlib
child = subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True, text=True).stdout.strip()
again = subprocess.run(['/proc/self/exe', '-c', 'print(1)'], capture_output=True, text=True).stdout.strip()
os.makedirs('a/b'); open('a/x', 'w').write('x'); os.rename('a/x', 'a/b/y'); os.link('a/b/y', 'z')
rows = sqlite3.connect('db').execute('select 1').fetchall()
pip = subprocess.run([sys.executable, '-m', 'pip', '--version'], capture_output=True, text=True).stdout.split()[0]
print(child, again, open('z').read(), rows, ssl.create_default_context() is not None, pip, open('/proc/self/comm').read().strip(), os.urandom(1) != b'')`
    const { stdout, stderr } = await sandbox.run(['python3', '-c', code])
    expect({ stdout, stderr }).toEqual({ stdout: '42 1 x [(1,)] True pip python3 True\n', stderr: '' })
  })

  test('git with a repository of its own', async () => {
    await using sandbox = await create({ commands: ['git'] })
    const git = async (...words: string[]): Promise<string> => {
      const { stdout, stderr } = await sandbox.run(['git', '-c', 'user.name=n', '-c', 'user.email=e', ...words])
      return stdout + stderr
    }
    await git('init', '-q', '-b', 'main')
    expect(await git('commit', '-q', '--allow-empty', '-m', 'one')).toBe('')
    expect(await git('log', '--format=%s')).toBe('one\n')
    expect(await git('status', '--short', '--branch')).toBe('## main\n')
  })

  test('a shell with its built-ins, and nothing beside', async () => {
    await using sandbox = await create({ commands: ['bash'] })
    const { stdout, stderr } = await sandbox.run('cd /tmp && echo $((6 * 7)) > f && read -r x < f && printf "%s\\n" "$x"; cat f; exit 0')
    expect({ stdout, stderr }).toEqual({ stdout: '42\n', stderr: '/bin/bash: line 1: /usr/bin/cat: Permission denied\n' })
  })
})

describe('a run of what is not listed is an outcome', () => {
  const notStarted = (reason: string) => ({ kind: 'not-started', code: 126, reason })

  test('that says so, also of the shell', async () => {
    await using sandbox = await create({ commands: ['git'] })
    expect((await sandbox.run(['ls'])).outcome).toEqual(notStarted('ls is not among the commands of this sandbox, is a folder, or may not be executed'))
    expect((await sandbox.run('git status')).outcome).toEqual(
      notStarted('/bin/bash is not among the commands of this sandbox; it is the shell that runs a command given as one string'),
    )
    expect((await sandbox.run(['nothing'])).outcome).toMatchObject({ kind: 'not-started', code: 127 })
  })

  test('for everything when the list is empty', async () => {
    await using sandbox = await create({ commands: [] })
    for (const command of [['/usr/bin/true'], ['git', '--version'], 'true'])
      expect((await sandbox.run(command)).outcome).toMatchObject({ kind: 'not-started', code: 126 })
  })
})

test('an unknown command is invalid, and nothing is opened', async () => {
  await expect(create({ commands: ['git', 'no-such-thing'] })).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/^commands\[1\]: there is no 'no-such-thing' in \//) as string,
  })
})

test('a list of commands is refused where the root can be written, because what is listed could be overwritten', async () => {
  await expect(create({ commands: ['git'], root: 'overlay' })).rejects.toMatchObject({
    code: 'unsupported',
    message: expect.stringContaining("commands cannot be enforced: with root: 'overlay' what is listed could be overwritten") as string,
  })
})

test('where a cell with rules for files does not open, a list of commands is not available, for the reason that was given', () => {
  expect(judgeCommands({ opened: true })).toEqual({ available: true })
  const said = 'the cell ended: make file rules by Landlock, which this kernel does not offer: Function not implemented'
  expect(judgeCommands({ opened: false, said })).toEqual({ available: false, why: `a cell with rules for files did not open: ${said}` })
})
