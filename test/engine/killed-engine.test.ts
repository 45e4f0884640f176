import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createPlatform, Sandbox } from '../../src/index.js'
import { startScript } from '../sys/run-script.js'

const probing = createPlatform()
const drivers = (await probing.probe()).filter(({ available }) => available).map(({ driver }) => driver)
await probing[Symbol.asyncDispose]()

let home: string

beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-killed-')))
  vi.stubEnv('TMPDIR', home)
  vi.stubEnv('GLOVEBOX_CACHE_DIR', join(home, 'cache'))
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(home, { recursive: true })
})

const namesIn = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : [])
const halves = (): string[] => [home, join(home, 'cache')].flatMap(namesIn).filter((name) => name.startsWith('glovebox-download-'))
const drafts = (): string[] => namesIn(join(home, 'store', 'drafts'))

function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ')
  } catch {
    return false
  }
}

async function killIn(what: string, driver: string): Promise<readonly number[]> {
  const { child, firstLine, ended } = await startScript(new URL('programs/hold-half-done.ts', import.meta.url), [what, driver, home])
  const pids = JSON.parse(await firstLine) as number[]
  child.kill('SIGKILL')
  await ended
  return pids
}

describe.each(drivers)('%s: an engine that is killed', (driver) => {
  test('while a sandbox is put away leaves what the next one sweeps, and no process', async () => {
    await killIn('put away', driver)
    expect(drafts()).not.toEqual([])
    await using platform = createPlatform({ snapshotDir: join(home, 'store') })
    await using sandbox = await Sandbox.create({ platform, driver, minTier: 'none' })
    await sandbox.pause({ memory: false })
    await sandbox.resume()
    expect(drafts()).toEqual([])
  })

  test('half-way through a download leaves nothing in its place, and what the next one sweeps', async () => {
    const pids = await killIn('download', driver)
    await expect.poll(() => pids.filter(isAlive)).toEqual([])
    expect([existsSync(join(home, 'out')), halves()]).toEqual([false, [expect.any(String)]])
    await using platform = createPlatform()
    await using sandbox = await Sandbox.create({ platform, driver, minTier: 'none' })
    await sandbox.files.write('a', 'a')
    await sandbox.files.download('a', join(home, 'out'))
    expect([readFileSync(join(home, 'out'), 'utf8'), halves()]).toEqual(['a', []])
  })
})
