import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { emulationObstacle, emulator, greetingOf } from './emulation.js'
import { type Elsewhere, makeElsewhere, pack, root, run } from './package.js'

const programs = ['warden', 'launcher', 'seccomp-compile', 'inspect']
const architectures = [
  { name: 'linux-x64', machine: 62 },
  { name: 'linux-arm64', machine: 183 },
]

let packed: string
let tarball: string
let elsewhere: Elsewhere

beforeAll(() => {
  packed = mkdtempSync(join(tmpdir(), 'glovebox-pack-'))
  elsewhere = makeElsewhere()
  tarball = pack(packed)
  const copy = join(elsewhere.folder, 'glovebox.tgz')
  writeFileSync(copy, readFileSync(tarball), { mode: 0o644 })
  const { code, stderr } = elsewhere.run(['npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', copy])
  if (code !== 0) throw new Error(`npm install: ${stderr}`)
}, 900_000)
afterAll(() => {
  elsewhere.remove()
  rmSync(packed, { recursive: true, force: true })
})

function installed(path: string): string {
  return join(elsewhere.folder, 'node_modules/glovebox', path)
}

describe('the tarball', () => {
  it('holds what running needs and nothing else', () => {
    const files = run(['tar', '-tzf', tarball], { cwd: root }).stdout.trim().split('\n')
    const strangers = files.filter(
      (path) => !/^package\/(dist\/.+|schemas\/.+\.json|package\.json|(LICENSE|README|CHANGELOG|SECURITY|THIRD-PARTY)(\.md)?)$/.test(path),
    )
    expect(strangers).toEqual([])
    expect(files.filter((path) => /\.(draft|tmp|tsbuildinfo)$|\.test\.|\/\.\w/.test(path))).toEqual([])
    const wanted = [
      'LICENSE',
      'README.md',
      'THIRD-PARTY.md',
      'dist/index.js',
      'dist/index.d.ts',
      'dist/cli/main.js',
      'dist/cli/program.js',
      'dist/conformance/index.d.ts',
    ]
    const kernels = ['index.json', 'node/load.json', 'node/typescript.json', 'python/load.json', 'shell/load.sh'].map((path) => `dist/runtimes/${path}`)
    expect(files).toEqual(expect.arrayContaining([...wanted, ...kernels].map((path) => `package/${path}`)))
  })

  it('has no script that an installation would run', () => {
    const { scripts } = JSON.parse(readFileSync(installed('package.json'), 'utf8')) as { scripts: Record<string, string> }
    const run = ['preinstall', 'install', 'postinstall', 'prepublish', 'preprepare', 'prepare', 'postprepare']
    expect(Object.keys(scripts).filter((name) => run.includes(name))).toEqual([])
  })

  it.each(architectures.flatMap(({ name, machine }) => programs.map((program) => [name, program, machine] as const)))(
    'carries %s/%s, static, stripped and executable',
    (name, program, machine) => {
      const file = installed(`dist/native/${name}/${program}`)
      const elf = readFileSync(file)
      expect(elf.subarray(0, 5)).toEqual(Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2]))
      expect(elf.readUInt16LE(18)).toBe(machine)
      const headers = Array.from({ length: elf.readUInt16LE(56) }, (_, index) =>
        elf.readUInt32LE(Number(elf.readBigUInt64LE(32)) + index * elf.readUInt16LE(54)),
      )
      const interpreter = 3
      expect(headers).not.toContain(interpreter)
      expect(elf.includes('.symtab')).toBe(false)
      expect(elsewhere.run(['test', '-x', file]).code).toBe(0)
    },
  )
})

describe('installed by an ordinary user without scripts', () => {
  const program = `
    const sandbox = await Sandbox.create()
    const { outcome, stdout } = await sandbox.run(['sh', '-c', 'echo $((6 * 7))'])
    console.log(JSON.stringify({ outcome, stdout }))
    await sandbox.close()`
  const expected = { code: 0, stdout: `${JSON.stringify({ outcome: { kind: 'exited', code: 0 }, stdout: '42\n' })}\n` }

  it('works from a plain .mjs file', () => {
    writeFileSync(join(elsewhere.folder, 'plain.mjs'), `import { Sandbox } from 'glovebox'\n${program}\n`)
    expect(elsewhere.run([process.execPath, 'plain.mjs'])).toMatchObject(expected)
  })

  it('works through require()', () => {
    writeFileSync(join(elsewhere.folder, 'plain.cjs'), `const { Sandbox } = require('glovebox')\nvoid (async () => {${program}\n})()\n`)
    expect(elsewhere.run([process.execPath, 'plain.cjs'])).toMatchObject(expected)
  })

  it('has the command glovebox', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
    const said = elsewhere.run([join(elsewhere.folder, 'node_modules/.bin/glovebox'), '--version'])
    expect({ code: said.code, names: said.stdout.includes(version) }).toEqual({ code: 0, names: true })
  })

  it.each(['nodenext', 'node16', 'bundler'])(
    'has types that a consumer with moduleResolution %s finds',
    (resolution) => {
      const module = resolution === 'bundler' ? 'esnext' : resolution
      const source = "import { Sandbox } from 'glovebox'\nexport const use = async (): Promise<string> => (await (await Sandbox.create()).run('true')).stdout\n"
      writeFileSync(join(elsewhere.folder, 'consumer.mts'), source)
      const flags = [
        '--noEmit',
        '--strict',
        '--target',
        'es2022',
        '--module',
        module,
        '--moduleResolution',
        resolution,
        '--types',
        'node',
        '--typeRoots',
        join(root, 'node_modules/@types'),
      ]
      const checked = run([join(root, 'node_modules/.bin/tsc'), ...flags, 'consumer.mts'], { cwd: elsewhere.folder })
      expect(checked).toMatchObject({ code: 0, stdout: '' })
    },
    600_000,
  )

  it('has types that a wrong use breaks', () => {
    writeFileSync(join(elsewhere.folder, 'wrong.mts'), "import { Sandbox } from 'glovebox'\nawait Sandbox.create({ limits: { memory: true } })\n")
    const flags = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node', '--typeRoots', join(root, 'node_modules/@types')]
    expect(run([join(root, 'node_modules/.bin/tsc'), ...flags, 'wrong.mts'], { cwd: elsewhere.folder }).stdout).toContain('TS2322')
  }, 600_000)
})

describe('the arm64 programs', () => {
  const skipWithoutEmulator = (context: TestContext) => {
    const obstacle = emulationObstacle()
    if (obstacle !== undefined) context.skip(obstacle)
  }

  it.for([
    ['warden', ['--nonsense'], 70, 'warden: understand --nonsense: Invalid argument\n'],
    ['launcher', [], 71, 'launcher: find program after --: Invalid argument\n'],
  ] as const)('run, and refuse what they do not understand: %s', ([name, args, status, line], context) => {
    skipWithoutEmulator(context)
    const refused = run([...emulator, installed(`dist/native/linux-arm64/${name}`), ...args], { cwd: root })
    expect(refused).toEqual({ code: status, stdout: '', stderr: line })
  })

  it('greet as the protocol says', async (context) => {
    skipWithoutEmulator(context)
    const { frame, diagnosis } = await greetingOf(installed('dist/native/linux-arm64/warden'))
    // QEMU's user mode knows neither subreapers nor seccomp, and a warden without them rightly refuses to go on.
    if (emulator.length > 0 && /become subreaper|load the warden's filter/.test(diagnosis)) context.skip(`QEMU's user mode lacks what it needs: ${diagnosis}`)
    const hello = { length: frame.readUInt32LE(0), type: frame[4], version: frame.readUInt32LE(12), window: frame.readUInt32LE(16) }
    expect(hello).toEqual({ length: 8, type: 1, version: 1, window: 256 * 1024 })
  })

  it('compile the same filter as the programs of this machine', (context) => {
    skipWithoutEmulator(context)
    const rules = 'default errno:38\nforeign errno:1\nrule allow read\nrule allow openat 2 eq 0\nrule errno:1 ptrace\n'
    const compile = ([file = '', ...args]: readonly string[]) => spawnSync(file, args, { input: rules })
    const emulated = compile([...emulator, installed('dist/native/linux-arm64/seccomp-compile')])
    const own = compile([installed(`dist/native/linux-${process.arch}/seccomp-compile`), '--arch', 'aarch64'])
    expect(emulated.stderr.toString()).toBe('')
    expect(emulated.stdout.length).toBeGreaterThan(0)
    expect(emulated.stdout).toEqual(own.stdout)
  })
})
