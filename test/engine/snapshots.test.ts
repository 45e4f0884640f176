import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Driver, Probe } from '../../src/contract/driver.js'
import type { Platform } from '../../src/contract/platform.js'
import type { SpecInput } from '../../src/contract/spec.js'
import { createFakeDriver } from '../../src/drivers/fake/driver.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { rejectionOf } from './collect.js'

let folder: string
let platform: Platform

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-engine-snapshots-'))
  platform = createPlatform({ snapshotDir: join(folder, 'store'), bounds: { maxSandboxes: 4 } })
})
afterEach(async () => {
  await platform[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

function create(spec: SpecInput = {}, signal?: AbortSignal): Promise<Sandbox> {
  return Sandbox.create({ driver: 'fake', minTier: 'none', ...spec, platform, ...(signal && { signal }) })
}

async function withFiles(script: string): Promise<Sandbox> {
  const sandbox = await create()
  expect((await sandbox.run(script)).stderr).toBe('')
  return sandbox
}

async function all(): Promise<string[]> {
  const ids: string[] = []
  for await (const { id } of platform.list()) ids.push(id)
  return ids
}

function drafts(): string[] {
  return existsSync(join(folder, 'store/drafts')) ? readdirSync(join(folder, 'store/drafts')) : []
}

/** A driver whose programs nothing can stop. */
function unstoppable(driver: Driver): Driver {
  const probe = async (): Promise<Probe> => {
    const probed = await driver.probe()
    return { ...probed, features: { ...probed.features, pause: { available: false, why: 'they are told not to' } } }
  }
  return { name: driver.name, tier: driver.tier, probe, open: (spec, signal) => driver.open(spec, signal) }
}

test('where nothing can be stopped, a file that is written to while it is read makes the snapshot a conflict that names it, and keeps nothing', async () => {
  await platform[Symbol.asyncDispose]()
  platform = createPlatform({ snapshotDir: join(folder, 'store'), drivers: [unstoppable(createFakeDriver())] })
  const sandbox = await withFiles('head -c 30000000 /dev/zero > big')
  // It starts no program for what it writes, so that it writes all the time.
  const writer = await sandbox.spawn('i=0; while :; do i=$((i+1)); echo $i > busy.log; done')
  await expect.poll(() => sandbox.files.exists('busy.log')).toBe(true)
  const error = await rejectionOf(sandbox.snapshot({ name: 'never' }))
  expect(error).toMatchObject({ code: 'conflict', message: expect.stringMatching(/busy\.log was written to while it was read/) })
  await writer.kill()
  expect([await platform.snapshots.list(), drafts()]).toEqual([[], []])
  expect(await sandbox.snapshot()).toMatchObject({ entries: 2 })
})

/** Counts, first in one file, then in the other. */
const counting: string[] = [
  '/usr/bin/python3',
  '-c',
  `
import os
one, two = (os.open(name, os.O_RDWR | os.O_CREAT, 0o644) for name in ('one', 'two'))
number = 0
while True:
  number += 1
  for file in (one, two): os.pwrite(file, b'%020d\\n' % number, 0)
`,
]

async function untilCounted(sandbox: Sandbox): Promise<number> {
  const count = async (): Promise<number> => Number(await sandbox.files.read('two').catch(() => ''))
  const before = await count()
  await expect.poll(count).toBeGreaterThan(before)
  return count()
}

test('programs that write all the time stand still for a snapshot, and go on after it', async () => {
  const sandbox = await withFiles('head -c 8000000 /dev/zero > big')
  const process = await sandbox.spawn(counting)
  await untilCounted(sandbox)
  for (let round = 0; round < 5; round += 1) {
    const { id } = await sandbox.snapshot()
    const again = await create({ from: id })
    const [one = 0, two = 0] = (await again.run('cat one two')).stdout.trim().split('\n').map(Number)
    expect([0, 1]).toContain(one - two)
    await again.close()
    await untilCounted(sandbox)
  }
  expect((await sandbox.diff()).map(({ path }) => path.split('/').at(-1))).toEqual(['big', 'one', 'two'])
  await untilCounted(sandbox)
  await process.kill()
})

test('what is started or read while a snapshot is taken waits for it; nothing is told of a pause', async () => {
  const sandbox = await withFiles('head -c 30000000 /dev/zero > big')
  const told: string[] = []
  const listening = (async () => {
    for await (const event of platform.life.events(sandbox.id)) told.push(event.type)
  })()
  const [{ entries }, { stdout }, isThere] = await Promise.all([sandbox.snapshot(), sandbox.run('echo ran; echo x > new'), sandbox.files.exists('absent')])
  expect([entries === 1 || entries === 2, stdout, isThere]).toEqual([true, 'ran\n', false])
  expect((await sandbox.info()).state).toBe('running')
  await sandbox.close()
  await listening
  expect(told.filter((type) => type !== 'exit')).toEqual(['closed'])
})

test('the time that a program may take stands still with it', async () => {
  await platform[Symbol.asyncDispose]()
  const driver = createFakeDriver()
  const open: Driver['open'] = async (spec, signal) => {
    const cell = await driver.open(spec, signal)
    // Longer than the program has.
    return { ...cell, pause: (besides) => cell.pause(besides).then(() => sleep(5000)) }
  }
  const slow: Driver = { name: driver.name, tier: driver.tier, probe: () => driver.probe(), open }
  platform = createPlatform({ snapshotDir: join(folder, 'store'), drivers: [slow] })
  const sandbox = await withFiles('echo x > a')
  const run = sandbox.run('echo begun > begun; until [ -e over ]; do sleep 0.02; done; echo done', { timeout: '4s' })
  await expect.poll(() => sandbox.files.exists('begun')).toBe(true)
  await sandbox.snapshot()
  await sandbox.files.write('over', '')
  expect(await run).toMatchObject({ stdout: 'done\n', outcome: { kind: 'exited', code: 0 } })
})

test('a snapshot that fails or is called off lets its sandbox go on', async () => {
  const sandbox = await withFiles('head -c 30000000 /dev/zero > big')
  const process = await sandbox.spawn(counting)
  await untilCounted(sandbox)
  for (const act of [
    () => sandbox.snapshot({ signal: AbortSignal.timeout(30) }),
    () => sandbox.diff({ signal: AbortSignal.timeout(5) }),
    () => sandbox.fork(9),
    () => sandbox.diff({ since: 'nothing' }),
  ]) {
    await rejectionOf(act())
    await untilCounted(sandbox)
  }
  expect([await platform.snapshots.list(), drafts()]).toEqual([[], []])
  await process.kill()
})

test('pausing, resuming and taking at once come to an end, each in its turn', async () => {
  const sandbox = await withFiles('echo x > a')
  const process = await sandbox.spawn(counting)
  const acts = Array.from({ length: 10 }, () => [sandbox.snapshot(), sandbox.pause(), sandbox.resume()]).flat()
  for (const { status, reason } of (await Promise.allSettled(acts)) as PromiseRejectedResult[]) {
    if (status === 'rejected') expect(reason).toMatchObject({ code: 'conflict', message: expect.stringContaining('is paused') })
  }
  await sandbox.resume()
  await untilCounted(sandbox)
  await process.kill()
})

test('a snapshot that is called off leaves nothing, and the sandbox goes on', async () => {
  const sandbox = await withFiles('head -c 30000000 /dev/zero > big')
  const controller = new AbortController()
  const taking = sandbox.snapshot({ signal: controller.signal })
  setTimeout(() => controller.abort(new Error('changed my mind')), 20)
  expect(await rejectionOf(taking)).toMatchObject({ message: 'changed my mind' })
  expect([await platform.snapshots.list(), drafts()]).toEqual([[], []])
  expect((await sandbox.run('wc -c < big')).stdout.trim()).toBe('30000000')
})

test('a sandbox that is closed while it is read says so, and keeps nothing', async () => {
  const sandbox = await withFiles('head -c 30000000 /dev/zero > big')
  const taking = rejectionOf(sandbox.snapshot())
  setTimeout(() => void sandbox.close(), 20)
  expect(await taking).toMatchObject({ code: 'closed' })
  expect([await platform.snapshots.list(), drafts()]).toEqual([[], []])
})

test('a damaged snapshot is never begun with: no sandbox is left of it', async () => {
  const sandbox = await withFiles('head -c 300000 /dev/urandom > data')
  const { id } = await sandbox.snapshot({ name: 'hurt' })
  const archive = join(folder, 'store/objects', id.slice(7), 'archive.tar')
  const bytes = readFileSync(archive)
  bytes[200_000] = (bytes[200_000] ?? 0) ^ 1
  chmodSync(archive, 0o600)
  writeFileSync(archive, bytes)
  // What other tests have in the folder that is everyone's is none of this.
  const own = mkdtempSync(join(folder, 'own-'))
  vi.stubEnv('TMPDIR', own)
  expect(await rejectionOf(create({ from: 'hurt' }))).toMatchObject({ code: 'broken', message: `snapshot ${id} is damaged: it is not what was kept` })
  vi.unstubAllEnvs()
  expect(await all()).toEqual([sandbox.id])
  expect(readdirSync(own)).toEqual([])
})

test('a name that moves takes no sandbox along: what one began with is told by id', async () => {
  const sandbox = await withFiles('echo 1 > a')
  const first = await sandbox.snapshot({ name: 'latest' })
  const begun = await create({ from: 'latest' })
  await sandbox.run('echo 2 > a')
  await sandbox.snapshot({ name: 'latest' })
  expect((await begun.info()).spec.from).toBe(first.id)
  expect((await begun.run('cat a')).stdout).toBe('1\n')
  expect((await (await create({ from: 'latest' })).run('cat a')).stdout).toBe('2\n')
})

test('the template is the snapshot’s; another is refused', async () => {
  const python = await create({ template: 'python' })
  await python.run('echo x > a')
  const { id } = await python.snapshot()
  expect((await (await create({ from: id })).info()).spec.template).toBe('python')
  const error = { code: 'invalid', message: `template: snapshot ${id} is of template 'python', not of 'host'` }
  expect(await rejectionOf(create({ from: id, template: 'host' }))).toMatchObject(error)
  const host = await create()
  expect(await rejectionOf(host.diff({ since: id }))).toMatchObject({ code: 'invalid', message: error.message.replace('template:', 'since:') })
})

test.each([
  ['limits.disk', 'head -c 200000 /dev/zero > a', { disk: '128k' }, 'limits.disk: '],
  ['limits.inodes', 'for i in $(seq 80); do : > $i; done', { inodes: 64 }, 'limits.inodes: '],
  ['limits.fileSize', 'head -c 5000 /dev/zero > a', { fileSize: 4096 }, 'limits.fileSize: '],
])('what does not fit %s is refused by its name', async (_, script, limits, message) => {
  const { id } = await (await withFiles(script)).snapshot()
  const others = await all()
  // The fake driver holds none of these, so that only what is told before counts.
  expect(await rejectionOf(create({ from: id, policy: { defaults: { limits } } }))).toMatchObject({
    code: 'invalid',
    message: expect.stringContaining(message),
  })
  expect(await all()).toEqual(others)
})

test('forks are all or none', async () => {
  const sandbox = await withFiles('echo origin > a')
  expect(await rejectionOf(sandbox.fork(4))).toMatchObject({ code: 'busy' })
  expect([await all(), drafts()]).toEqual([[sandbox.id], []])
  const forks = await sandbox.fork(3, { name: 'copy', metadata: { of: sandbox.id } })
  expect(await Promise.all(forks.map(async (fork) => (await fork.run('cat a')).stdout))).toEqual(['origin\n', 'origin\n', 'origin\n'])
  const { spec } = await (forks[0] as Sandbox).info()
  expect([spec.name, spec.metadata, spec.from?.slice(0, 7)]).toEqual(['copy', { of: sandbox.id }, 'sha256:'])
  expect((await forks[0]?.receipt())?.from).toBe(spec.from)
  expect([await platform.snapshots.list(), drafts()]).toEqual([[], []])
})

test('a fork that is called off leaves no sandbox', async () => {
  const sandbox = await withFiles('head -c 30000000 /dev/zero > a')
  const controller = new AbortController()
  const forking = rejectionOf(sandbox.fork(3, { signal: controller.signal }))
  await expect.poll(() => drafts().length).toBeGreaterThan(0)
  controller.abort(new Error('enough'))
  expect(await forking).toMatchObject({ message: 'enough' })
  expect([await all(), drafts()]).toEqual([[sandbox.id], []])
})

test.each([
  ['no whole number', 1.5, {}, 'count: '],
  ['none', 0, {}, 'count: '],
  ['too many', 1001, {}, 'count: '],
  ['text', '2', {}, 'count: '],
  ['a name with a line end', 1, { name: 'a\nb' }, 'name: '],
  ['metadata that are no text', 1, { metadata: { a: 1 } }, 'metadata.a: '],
  ['what nobody knows', 1, { nmae: 'x' }, 'nmae: '],
])('a fork with %s is refused by the field', async (_, count, options, field) => {
  const sandbox = await create()
  expect(await rejectionOf(sandbox.fork(count as number, options as object))).toMatchObject({ code: 'invalid', message: expect.stringContaining(field) })
})

test.each(['', 'sha256:x', 'AB'.repeat(32), 'a\u0007', 'x'.repeat(201)])('the name %j is refused', async (name) => {
  const sandbox = await create()
  expect(await rejectionOf(sandbox.snapshot({ name }))).toMatchObject({ code: 'invalid', message: expect.stringMatching(/^name: /) })
})

test('what is not there is told as such', async () => {
  const sandbox = await create()
  const missing = { code: 'not-found', hint: 'glovebox snapshots list' }
  expect(await rejectionOf(sandbox.diff({ since: 'nobody' }))).toMatchObject({ ...missing, message: 'since: there is no snapshot nobody' })
  expect(await rejectionOf(create({ from: 'nobody' }))).toMatchObject({ ...missing, message: 'from: there is no snapshot nobody' })
  expect(await platform.snapshots.remove('nobody')).toBe(false)
  await sandbox.close()
  expect(await rejectionOf(sandbox.snapshot())).toMatchObject({ code: 'closed' })
})

test('a platform that is closed while a snapshot is sought makes no sandbox', async () => {
  const { id } = await (await withFiles('echo x > a')).snapshot()
  const creating = rejectionOf(create({ from: id }))
  await platform[Symbol.asyncDispose]()
  expect(await creating).toMatchObject({ code: 'closed' })
  expect(await all()).toEqual([])
})

test('an archive of changes applied elsewhere makes the same tree, and only the topmost removal is marked', async () => {
  const sandbox = await withFiles('mkdir -p gone/deep stays; echo 1 > gone/deep/a; echo 2 > stays/b; ln stays/b stays/c; echo old > turned')
  const { id } = await sandbox.snapshot()
  await sandbox.run('rm -r gone turned; mkdir turned; echo in > turned/x; chmod 700 turned; ln stays/b stays/d; ln -s b stays/e; mkfifo stays/f')
  const archive = join(folder, 'changes.tar')
  await writeFile(archive, await sandbox.export({ since: id }))
  const listed = spawnSync('tar', ['tf', archive], { encoding: 'utf8' }).stdout.trim().split('\n')
  expect(listed.sort()).toEqual(
    ['.wh.gone', 'stays/b', 'stays/c', 'stays/d', 'stays/e', 'stays/f', 'turned/', 'turned/x'].map((name) => `workspace/${name}`).sort(),
  )
  spawnSync('tar', ['xf', archive, '-C', folder])
  const there = (name: string): string => join(folder, 'workspace', name)
  expect([statSync(there('stays/d')).ino, statSync(there('turned')).mode & 0o777]).toEqual([statSync(there('stays/b')).ino, 0o700])
  expect([lstatSync(there('stays/e')).isSymbolicLink(), lstatSync(there('stays/f')).isFIFO()]).toEqual([true, true])
})

test('an archive of changes has no set-id bits', async () => {
  const sandbox = await withFiles('echo x > a; chmod 6755 a; ln a b; mkdir c; chmod 3777 c')
  const archive = join(folder, 'modes.tar')
  await writeFile(archive, await sandbox.export())
  const listed = spawnSync('tar', ['tvf', archive], { encoding: 'utf8' }).stdout.trim().split('\n')
  expect(listed.map((line) => line.split(' ')[0])).toEqual(['-rwxr-xr-x', 'hrwxr-xr-x', 'drwxrwxrwt'])
})

test('since the template everything is new; a socket is nothing that can be kept', async () => {
  const sandbox = await withFiles('echo x > a; python3 -c \'import socket; socket.socket(socket.AF_UNIX).bind("s")\'')
  const changes = await sandbox.diff()
  expect(changes.map(({ type, entry, path, size, mode }) => [type, entry, path.split('/').at(-1), size, mode])).toEqual([['added', 'file', 'a', 2, 0o644]])
  expect((await sandbox.snapshot()).entries).toBe(1)
})

test('a removed file whose mark would mean a whole folder cannot be exported', async () => {
  const sandbox = await withFiles('touch .wh..opq other')
  const { id } = await sandbox.snapshot()
  await sandbox.run('rm .wh..opq')
  expect(await rejectionOf(sandbox.export({ since: id }))).toMatchObject({ code: 'conflict', message: expect.stringContaining('.wh..opq') })
})

test('a file whose own name means a removal cannot be exported, but kept', async () => {
  const sandbox = await withFiles('echo x > .wh.a')
  expect(await rejectionOf(sandbox.export())).toMatchObject({ code: 'conflict', message: expect.stringContaining('.wh.a') })
  const again = await create({ from: (await sandbox.snapshot()).id })
  expect((await again.run('cat .wh.a')).stdout).toBe('x\n')
})

test('an export that is left early lets the sandbox go on', async () => {
  const sandbox = await withFiles('head -c 30000000 /dev/zero > big')
  for await (const bytes of await sandbox.export()) if (bytes.length > 0) break
  expect((await sandbox.diff()).length).toBe(1)
})
