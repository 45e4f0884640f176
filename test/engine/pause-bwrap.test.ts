import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Platform } from '../../src/contract/platform.js'
import { verifyReceipt } from '../../src/receipt/index.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { descendantsOf } from '../../src/sys/posture/process-tree.js'
import { startScript } from '../sys/run-script.js'
import { rejectionOf } from './collect.js'

let platform: Platform
let why: string | undefined

beforeAll(async () => {
  platform = createPlatform()
  const [probe] = await platform.probe()
  const pause = probe?.features.pause
  why = pause?.available === false ? pause.why : undefined
})
afterAll(() => platform[Symbol.asyncDispose]())

function groupsNamed(part: string, folder = '/sys/fs/cgroup'): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      if (!entry.isDirectory()) return []
      return entry.name.includes(part) ? [join(folder, entry.name)] : groupsNamed(part, join(folder, entry.name))
    })
  } catch {
    return []
  }
}

const alive = (pids: readonly number[]): number[] =>
  pids.filter((pid) => {
    try {
      return !readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ')
    } catch {
      return false
    }
  })

test('programs that work use no processor while they are paused, and go on', async ({ skip }) => {
  if (why) skip(why)
  await using sandbox = await Sandbox.create({ platform })
  await sandbox.spawn('while :; do :; done')
  const waiting = await sandbox.spawn('echo up; read line; exit 7', { timeout: '3s' })
  await waiting.stdout.getReader().read()
  const begun = performance.now()
  expect((await sandbox.pause()).state).toBe('paused')
  expect(performance.now() - begun).toBeLessThan(10_000)
  const { cpuMs } = await sandbox.usage()
  expect(cpuMs).toBeGreaterThan(0)
  await sleep(4000)
  expect((await sandbox.usage()).cpuMs).toBe(cpuMs)
  const receipt = await sandbox.receipt()
  expect(verifyReceipt(receipt)).toMatchObject({ valid: true })
  expect(await rejectionOf(sandbox.run('true'))).toMatchObject({ code: 'conflict', message: `sandbox ${sandbox.id} is paused; resume it first` })
  expect((await (await Sandbox.connect(sandbox.id, { platform, resume: true })).info()).state).toBe('running')
  await waiting.stdin.write('\n')
  const { outcome, usage } = await waiting.wait()
  expect(outcome).toEqual({ kind: 'exited', code: 7 })
  expect(usage.wallMs).toBeLessThan(3000)
  await expect.poll(async () => (await sandbox.usage()).cpuMs).toBeGreaterThan(cpuMs)
})

test('a paused sandbox is closed at once, with what double-forked and what ignores signals', async ({ skip }) => {
  if (why) skip(why)
  const sandbox = await Sandbox.create({ platform })
  await sandbox.run('(setsid sh -c "trap : TERM HUP INT; while :; do :; done" > /dev/null 2>&1 &)')
  await sandbox.pause()
  const before = descendantsOf(process.pid)
  const begun = performance.now()
  await sandbox.close()
  expect(performance.now() - begun).toBeLessThan(4000)
  expect(groupsNamed(sandbox.id)).toEqual([])
  expect(before.length - alive(before).length).toBeGreaterThanOrEqual(4)
})

test('pausing and resuming a hundred times at once comes to an end, and to no harm', async ({ skip }) => {
  if (why) skip(why)
  await using sandbox = await Sandbox.create({ platform })
  await sandbox.spawn('while :; do true; done')
  await Promise.all(Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? sandbox.pause() : sandbox.resume())))
  expect((await sandbox.info()).state).toBe('running')
  expect((await sandbox.run('echo on')).stdout).toBe('on\n')
})

test('kill -9 of the engine while a sandbox is paused leaves no process and no group', async ({ skip }) => {
  if (why) skip(why)
  const { child, firstLine, ended } = await startScript(new URL('programs/hold-paused.ts', import.meta.url))
  const { owner, pids } = JSON.parse(await firstLine) as { owner: string; pids: number[] }
  expect(pids.length).toBeGreaterThan(6)
  child.kill('SIGKILL')
  await ended
  await expect.poll(() => alive(pids)).toEqual([])
  const next = createPlatform()
  await (await Sandbox.create({ platform: next })).close()
  await next[Symbol.asyncDispose]()
  expect(groupsNamed(owner)).toEqual([])
})

test('an ordinary user without cgroups is refused with the reason, and what runs goes on', async ({ skip }) => {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/setpriv')) skip('needs root to become someone else')
  const place = mkdtempSync(join(tmpdir(), 'pause-ordinary-'))
  chownSync(place, 65_534, 65_534)
  const places = ['CACHE', 'STATE', 'KEY', 'SNAPSHOT'].map((name) => `GLOVEBOX_${name}_DIR=${place}/${name}`)
  const ordinary = ['env', ...places, 'setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
  const { ended } = await startScript(new URL('programs/hold-paused.ts', import.meta.url), [], ordinary)
  const { stdout, stderr } = await ended
  rmSync(place, { recursive: true })
  if (stdout === '') skip(`this user can open no cell here: ${stderr.slice(0, 500)}`)
  const told = JSON.parse(stdout) as { code: string; message: string; state: string; pause: { available: boolean; why: string } }
  expect(told).toMatchObject({ code: 'unsupported', state: 'running', pause: { available: false } })
  expect(told.message).toBe(`programs cannot be paused here: ${told.pause.why}`)
})
