import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { isRunning, markedSleep, waitUntil } from '../engine/processes.js'

const library = fileURLToPath(new URL('../../dist/index.js', import.meta.url))

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A whole Node.js process whose only work is this script; `create()` makes a sandbox without walls. */
function node(script: string): Promise<Ended> {
  const prelude = `import { Sandbox, createPlatform, SandboxError } from ${JSON.stringify(library)}
const create = (spec) => Sandbox.create({ driver: 'fake', minTier: 'none', ...spec })\n`
  const child = spawn(process.execPath, ['--input-type=module', '--unhandled-rejections=strict', '--eval', prelude + script], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (bytes: Buffer) => {
      said[name] += bytes.toString()
    })
  }
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...said })))
}

describe('a Node.js process', () => {
  test('that imports the library does nothing and ends', async () => {
    expect(await node('console.log(typeof Sandbox, typeof createPlatform, typeof SandboxError)')).toEqual({
      code: 0,
      stdout: 'function function function\n',
      stderr: '',
    })
  })

  test('may require the library, which has no top-level await', async () => {
    const { code, stdout } = await node(`import { createRequire } from 'node:module'
console.log(typeof createRequire(import.meta.url)(${JSON.stringify(library)}).Sandbox.create)`)
    expect([code, stdout]).toEqual([0, 'function\n'])
  })

  test('ends although a sandbox was left open and idle, and takes its programs along', async () => {
    const { marker, command } = markedSleep()
    const { code, stdout, stderr } = await node(`const sandbox = await create()
await sandbox.run('${command} & exit 0')
console.log('idle')`)
    expect([code, stdout, stderr]).toEqual([0, 'idle\n', ''])
    await waitUntil(() => !isRunning(marker))
  })

  test('stays until what it waits for has come', async () => {
    const { code, stdout, stderr } = await node(`const sandbox = await create()
const { exitCode } = await sandbox.run('sleep 0.5; exit 3')
console.log(exitCode)
const timed = await sandbox.run('sleep 30', { timeout: 300 })
console.log(timed.outcome.kind)
await sandbox.close()
console.log('closed')`)
    expect([code, stdout, stderr]).toEqual([0, '3\ntimed-out\nclosed\n', ''])
  })

  test('is not ended by runs that fail and that nobody looks at', async () => {
    const { code, stdout, stderr } = await node(`const sandbox = await create()
sandbox.run('')
sandbox.run('true', { cwd: '/no/such/folder' })
sandbox.run('sleep 30', { signal: AbortSignal.timeout(100) })
for await (const event of sandbox.run('exit 1')) console.log(event.type, event.exitCode)
const iterated = sandbox.run('sleep 30', { signal: AbortSignal.timeout(100) })
try { for await (const event of iterated); } catch (error) { console.log(error.name) }
const left = await sandbox.spawn('sleep 30')
const doomed = sandbox.run('sleep 30')
await new Promise((resolve) => setTimeout(resolve, 200))
await sandbox.close()
sandbox.run('true')
await new Promise((resolve) => setTimeout(resolve, 100))
console.log('still here')`)
    expect([code, stdout, stderr]).toEqual([0, 'exit 1\nTimeoutError\nstill here\n', ''])
  })

  test('is told by an error that it does not catch', async () => {
    const { code, stderr } = await node(`await Sandbox.create({ limits: { memory: -1 } })`)
    expect(code).toBe(1)
    expect(stderr).toContain('limits.memory: must be at least')
  })

  test('on a system without drivers is told the way on', async () => {
    const { code, stdout, stderr } = await node(`Object.defineProperty(process, 'platform', { value: 'darwin' })
const error = await Sandbox.create().catch((error) => error)
console.log(error.code, error.hint.split(' ')[0])`)
    expect([code, stdout, stderr]).toEqual([0, 'unsupported docker\n', ''])
  })

  test('holds its sandboxes on one platform, and may have others of its own', async () => {
    const { stdout, stderr } = await node(`const sandbox = await create({ name: 'one' })
const other = createPlatform()
console.log((await Sandbox.connect(sandbox.id)).id === sandbox.id)
console.log((await Sandbox.connect(sandbox.id, { platform: other }).catch((error) => error)).code)
console.log(await Sandbox.closeAll({ name: 'one' }))`)
    expect([stdout, stderr]).toEqual(['true\nnot-found\n1\n', ''])
  })
})
