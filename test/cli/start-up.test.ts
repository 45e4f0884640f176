import { spawnSync } from 'node:child_process'
import { chmodSync, linkSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cliPath } from './cli.js'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }

let caches: string
beforeEach(() => {
  caches = mkdtempSync(join(tmpdir(), 'glovebox-start-'))
})
afterEach(() => rmSync(caches, { recursive: true, force: true }))

function start(args: readonly string[] = ['--version'], env: Readonly<Record<string, string>> = {}) {
  const inherited = { ...process.env, NODE_DISABLE_COMPILE_CACHE: '', GLOVEBOX_CACHE_DIR: caches }
  const { status, stdout, stderr } = spawnSync(process.execPath, [cliPath, ...args], { env: { ...inherited, ...env }, encoding: 'utf8' })
  return { status, stdout, stderr }
}

/** In the middle, where V8 would not look for it. */
function damage(path: string): void {
  const bytes = readFileSync(path)
  writeFileSync(path, bytes.fill(0xff, bytes.length / 2, bytes.length / 2 + 64))
}

function replaceByPipe(path: string): void {
  rmSync(path)
  expect(spawnSync('mkfifo', [path]).status).toBe(0)
}

const asItShould = { status: 0, stdout: `${version}\n`, stderr: '' }

/** The one cache that a start made. */
function cachePath(): string {
  const names = readdirSync(join(caches, 'code'))
  expect(names).toHaveLength(1)
  return join(caches, 'code', names[0] ?? '')
}

function made(): string {
  expect(start()).toEqual(asItShould)
  return cachePath()
}

describe('what V8 compiled of the command', () => {
  it('is kept for its owner alone, and the next start takes it as it is', () => {
    const path = made()
    const before = statSync(path)
    expect({ mode: before.mode & 0o777, folder: statSync(join(caches, 'code')).mode & 0o777 }).toEqual({ mode: 0o600, folder: 0o700 })
    expect(start()).toEqual(asItShould)
    expect(statSync(cachePath())).toMatchObject({ ino: before.ino, mtimeMs: before.mtimeMs })
  })

  it.each([
    ['others can read or write', (path: string) => chmodSync(path, 0o666)],
    ['has a second name', (path: string) => linkSync(path, join(caches, 'other-name'))],
    ['is reached by a link', (path: string) => moveBehindLink(path)],
    ['was cut short', (path: string) => writeFileSync(path, readFileSync(path).subarray(0, 4096))],
    ['lost some of its bytes', (path: string) => damage(path)],
    ['is a pipe', (path: string) => replaceByPipe(path)],
    ['holds something else', (path: string) => writeFileSync(path, 'something else')],
  ])('is made again when the file %s', (_, spoil) => {
    const path = made()
    const whole = readFileSync(path).length
    spoil(path)
    const spoiled = lstatSync(path).ino
    expect(start()).toEqual(asItShould)
    const { ino, size, mode, nlink } = lstatSync(path)
    expect({ isNew: ino !== spoiled, isWhole: size > whole / 2, mode: mode & 0o777, nlink }).toEqual({ isNew: true, isWhole: true, mode: 0o600, nlink: 1 })
  })

  it('is not shared by starts with other flags of V8', () => {
    made()
    expect(start(['--version'], { NODE_OPTIONS: '--stack-trace-limit=20' })).toEqual(asItShould)
    expect(readdirSync(join(caches, 'code'))).toHaveLength(2)
  })

  it('is not kept of a command that failed', () => {
    expect(start(['no-such-command']).status).toBe(125)
    expect(readdirSync(caches)).toEqual([])
  })

  it('is not kept when nobody wants it', () => {
    expect(start(['--version'], { NODE_DISABLE_COMPILE_CACHE: '1' })).toEqual(asItShould)
    expect(readdirSync(caches)).toEqual([])
  })

  it('is not kept where others can write, and that is no failure', () => {
    chmodSync(caches, 0o777)
    expect(start()).toEqual(asItShould)
    expect(readdirSync(caches)).toEqual([])
  })

  it('does not pile up', () => {
    const path = made()
    for (let index = 0; index < 30; index++) writeFileSync(`${path}${index}`, '')
    rmSync(path)
    expect(start()).toEqual(asItShould)
    expect(readdirSync(join(caches, 'code'))).toHaveLength(24)
  })
})

function moveBehindLink(path: string): void {
  mkdirSync(join(caches, 'elsewhere'))
  writeFileSync(join(caches, 'elsewhere/cache'), readFileSync(path), { mode: 0o600 })
  rmSync(path)
  symlinkSync(join(caches, 'elsewhere/cache'), path)
}

describe('a command that is called', () => {
  it('says of itself what it says beside all the others', () => {
    const names = [...start(['--help']).stdout.matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, name = '']) => name).filter((name) => name !== 'help')
    expect(names).toContain('run')
    for (const name of names) expect(start([name, '--help'])).toEqual(start(['help', name]))
  })

  it('loads nothing of Node to measure or to compress with', () => {
    const told = join(caches, 'told.cjs')
    writeFileSync(told, "process.on('exit', () => console.error(process.moduleLoadList.join('\\n')))")
    const { status, stderr } = start(['run', '--driver', 'fake', '--min-tier', 'none', '-q', '--', 'true'], { NODE_OPTIONS: `--require=${told}` })
    const loaded = stderr.split('\n').filter((line) => /^NativeModule (perf_hooks|zlib|child_process|http)$/.test(line))
    expect({ status, loaded }).toEqual({ status: 0, loaded: ['NativeModule child_process'] })
  })
})

it.each(['v12.22.12', 'v18.20.4', 'v20.18.3'])('Node %s is refused in one line, whatever else it would not understand', (version) => {
  const older = join(caches, 'older.cjs')
  writeFileSync(older, `Object.defineProperty(process, 'version', { value: '${version}' })`)
  expect(start(['--version'], { NODE_OPTIONS: `--require=${older}` })).toEqual({
    status: 125,
    stdout: '',
    stderr: `glovebox: needs Node.js 20.19 or newer, and found ${version}\nhint: https://nodejs.org/en/download\n`,
  })
})
