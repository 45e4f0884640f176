import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { FileCalls } from '../../src/contract/files.js'
import type { Engine } from '../../src/engine/engine.js'
import { SandboxFiles } from '../../src/sandbox/index.js'
import { localFiles } from '../../src/sys/host-folder.js'
import { WorkerPatience } from '../../src/engine/worker-patience.js'
import { descendantsOf } from '../../src/sys/posture/process-tree.js'
import { startScript } from '../sys/run-script.js'
import { rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'
import { waitUntil } from './processes.js'

let driver: PlainDriver
let engine: Engine
let id: string
let files: FileCalls
/** Of the host's, and where downloads go. */
let local: string

beforeEach(async () => {
  local = mkdtempSync(join(tmpdir(), 'gbx-lost-'))
  driver = new PlainDriver()
  engine = createPlainEngine(driver)
  id = (await engine.create({})).id
  files = engine.files.of(id)
})

afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  rmSync(local, { recursive: true })
})

function workdir(): string {
  return driver.cells[0]?.workdir ?? ''
}

function wardenPid(): number {
  return driver.cells[0]?.child.pid ?? 0
}

/** By the name that they give themselves. */
function workers(): number[] {
  return descendantsOf(wardenPid()).filter((pid) => nameOf(pid) === 'files')
}

function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return ''
  }
}

async function* endless(): AsyncGenerator<Uint8Array, void, undefined> {
  for (;;) yield await Promise.resolve(new Uint8Array(65_536))
}

async function* never(): AsyncGenerator<Uint8Array, void, undefined> {
  yield new Uint8Array(1)
  await new Promise(() => undefined)
}

/** Enough files that a copy is caught in the middle. */
function plantTree(): void {
  for (let folder = 0; folder < 100; folder += 1) {
    mkdirSync(join(workdir(), `tree/${folder}`), { recursive: true })
    for (let file = 0; file < 100; file += 1) writeFileSync(join(workdir(), `tree/${folder}/${file}`), 'x')
  }
}

const drafts = (): string[] => readdirSync(workdir()).filter((name) => name.startsWith('.glovebox-'))

function writeSparse(path: string, size: number): void {
  writeFileSync(path, '')
  truncateSync(path, size)
}

type Act = readonly [what: string, act: () => Promise<unknown>]

async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items) await new Promise((resolve) => setTimeout(resolve, 1))
}

const acts: readonly Act[] = [
  ['a read', async () => drain((await files.read('large')).bytes)],
  ['a write', () => files.write('w', endless())],
  ['a write that waits for its content', () => files.write('w', never())],
  ['a watch', async () => drain(await files.watch('.'))],
  ['a list', () => drain(files.list('/proc', { depth: Infinity }))],
  ['a pack', async () => drain(await files.pack('.'))],
  ['a search', () => files.search('.', '(x|y|z)*w', { regex: true })],
  ['an upload', () => between().upload(join(local, 'sparse'), 'up')],
  ['an upload of a folder', () => between().upload(local, 'up')],
  ['a download', () => between().download('large', join(local, 'down'), slowly)],
  ['a download of a folder', () => between().download('.', join(local, 'down'), slowly)],
]

const between = (): SandboxFiles => new SandboxFiles({ files, local: localFiles })

/** So that it is not over before it is disturbed. */
const slowly = { onProgress: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5) }

describe.each(acts)('in the middle of %s', (_, act) => {
  beforeEach(() => {
    writeSparse(join(workdir(), 'large'), 64 * 2 ** 20)
    writeSparse(join(local, 'sparse'), 2 ** 30)
    writeFileSync(join(workdir(), 'text'), `${'xyz'.repeat(1000)}\n`.repeat(1000))
  })
  afterEach(() => expect(readdirSync(local)).toEqual(['sparse']))

  test('the end of the warden is told as the end of the sandbox', async () => {
    const told = rejectionOf(act())
    await waitUntil(() => workers().length === 1)
    process.kill(wardenPid(), 'SIGKILL')
    expect(await told).toMatchObject({ code: 'broken', message: expect.stringContaining(id) })
  })

  test('the sandbox can be closed', async () => {
    const told = rejectionOf(act())
    await waitUntil(() => workers().length === 1)
    await engine.close(id)
    expect(await told).toMatchObject({ code: 'closed', message: `sandbox ${id} was closed` })
  })

  test('a killed worker is told, and the next operation gets another', async () => {
    const told = rejectionOf(act())
    await waitUntil(() => workers().length === 1)
    for (const pid of workers()) process.kill(pid, 'SIGKILL')
    expect(await told).toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(/^files\.\w+ .*: the file worker was ended by a program in the sandbox/),
    })
    expect((await files.stat('large'))?.size).toBe(64 * 2 ** 20)
  })
})

test('a copy whose worker is killed, or that is called off, leaves nothing beside its place', async () => {
  plantTree()
  const killed = rejectionOf(files.copy('tree', 'other'))
  await waitUntil(() => drafts().length === 1)
  for (const pid of workers()) process.kill(pid, 'SIGKILL')
  expect(await killed).toMatchObject({ code: 'conflict' })
  expect(drafts()).toEqual([])
  const controller = new AbortController()
  const aborted = rejectionOf(files.copy('tree', 'other', { signal: controller.signal }))
  await waitUntil(() => drafts().length === 1)
  controller.abort(new Error('enough'))
  expect(await aborted).toMatchObject({ message: 'enough' })
  expect([drafts(), await files.stat('other')]).toEqual([[], null])
})

test('a paused sandbox does nothing with files, and says so', async () => {
  await engine.life.pause(id)
  expect(await rejectionOf(files.stat('a'))).toMatchObject({ code: 'conflict', message: expect.stringContaining('paused') })
  await engine.life.resume(id)
  expect(await files.stat('a')).toBeNull()
})

test('a worker that a guest stops is ended once it was silent for too long, and the next operation gets another', { timeout: 240_000 }, async () => {
  driver.counts = () => ({ cpuMs: 5 })
  const told = rejectionOf(files.write('a', endless()))
  await waitUntil(() => workers().length === 1)
  const [stopped = 0] = workers()
  process.kill(stopped, 'SIGSTOP')
  expect(await told).toMatchObject({ code: 'conflict', message: expect.stringContaining('the file worker did not answer and was ended') })
  expect(workers()).not.toContain(stopped)
  expect(await files.stat('b')).toBeNull()
})

test('a worker that says nothing while it works is waited for', async () => {
  const worked = [1, 2, 2, 3, 3, 3]
  const silentAfter: number[] = []
  const patience = new WorkerPatience({
    program: { write: () => new Promise<void>(() => undefined) } as never,
    run: { usage: () => ({ cpuMs: worked.shift() ?? 3 }) } as never,
    clock: { now: () => performance.now(), isStopped: false, join: () => undefined, leave: () => undefined },
    silentMs: 30,
    onSilent: () => silentAfter.push(worked.length),
  })
  void patience.write(new Uint8Array(1))
  await waitUntil(() => patience.isSilent)
  expect(silentAfter).toEqual([0])
})

test('a process that has used files and holds a sandbox ends at once', async () => {
  const { ended } = await startScript(new URL('programs/leave-files.ts', import.meta.url))
  const { code, stdout, stderr } = await ended
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(Number(stdout)).toBeLessThan(2500)
})
