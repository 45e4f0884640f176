import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { root, run } from './package.js'

const folder = join(root, 'dist/native/linux-arm64')
// On an arm64 machine the programs run as they are; elsewhere through QEMU's user mode.
const emulator = process.arch === 'arm64' ? [] : ['qemu-aarch64-static']

function emulatorObstacle(): string | undefined {
  const [program] = emulator
  if (program === undefined || spawnSync(program, ['--version']).status === 0) return undefined
  return `${program} is not here (apt-get install qemu-user-static)`
}

function skipWithoutEmulator(context: TestContext): void {
  const obstacle = emulatorObstacle()
  if (obstacle !== undefined) context.skip(obstacle)
}

beforeAll(() => {
  if (existsSync(join(folder, 'warden')) && existsSync(join(folder, 'seccomp-compile'))) return
  const packed = run([process.execPath, 'scripts/pack.mjs'], { cwd: root })
  if (packed.code !== 0) throw new Error(packed.stderr)
}, 240_000)

/** The first bytes a warden sends, after which it is told to end. */
function greet(): Promise<Buffer> {
  const [file = '', ...args] = [...emulator, join(folder, 'warden'), '--subreaper']
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  const chunks: Buffer[] = []
  let diagnosis = ''
  child.stderr.on('data', (chunk: Buffer) => {
    diagnosis += chunk.toString()
  })
  child.stdout.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    child.stdin.end()
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => (chunks.length > 0 ? resolve(Buffer.concat(chunks)) : reject(new Error(`no frame: ${diagnosis}`))))
  })
}

describe('the arm64 programs', () => {
  it('greet as the protocol says', async (context) => {
    skipWithoutEmulator(context)
    const frame = await greet()
    const [version, window] = [1, 256 * 1024]
    expect({ length: frame.readUInt32LE(0), type: frame[4], version: frame.readUInt32LE(12), window: frame.readUInt32LE(16) }).toEqual({
      length: 8,
      type: 1,
      version,
      window,
    })
  })

  it('compile the same filter as the programs of this machine', (context) => {
    skipWithoutEmulator(context)
    const rules = 'default errno:38\nforeign kill-process\nrule allow read\nrule allow openat 2 eq 0\nrule errno:1 ptrace\n'
    const own = join(root, `dist/native/linux-${process.arch}`)
    const [emulated, native] = [
      [...emulator, join(folder, 'seccomp-compile')],
      [join(own, 'seccomp-compile'), '--arch', 'aarch64'],
    ].map(([file = '', ...args]) => spawnSync(file, args, { input: rules }))
    expect(emulated?.stderr.toString()).toBe('')
    expect(emulated?.stdout.length).toBeGreaterThan(0)
    expect(emulated?.stdout).toEqual(native?.stdout)
  })
})
