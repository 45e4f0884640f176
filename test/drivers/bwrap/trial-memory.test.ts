import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import { bwrapPath } from '../../../src/drivers/bwrap/facts.js'
import { createTrialMemory, type TrialMemory } from '../../../src/cell/trial-memory.js'

let folder: string
let memory: TrialMemory
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'glovebox-trials-'))
  memory = createTrialMemory(bwrapPath, () => folder)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function keptPath(): string {
  return join(folder, 'trials', readdirSync(join(folder, 'trials'))[0] ?? '')
}

describe('the memory of trials', () => {
  it('tells another process of the same account what it kept, and nothing before', () => {
    expect(memory.recall()).toBeUndefined()
    memory.keep('0.8.0')
    expect(createTrialMemory(bwrapPath, () => folder).recall()).toBe('0.8.0')
  })

  it('forgets when it is told to', () => {
    memory.keep('0.8.0')
    memory.forget()
    expect(memory.recall()).toBeUndefined()
  })

  it.each([
    ['an hour ago', -3_600_001],
    ['in the future', 60_000],
  ])('does not answer for what was tried %s', (_, differenceMs) => {
    memory.keep('0.8.0')
    const kept = JSON.parse(readFileSync(keptPath(), 'utf8')) as { atMs: number }
    writeFileSync(keptPath(), JSON.stringify({ ...kept, atMs: Date.now() + differenceMs }))
    expect(memory.recall()).toBeUndefined()
  })

  it('does not answer from what is no memory', () => {
    memory.keep('0.8.0')
    writeFileSync(keptPath(), '{')
    expect(memory.recall()).toBeUndefined()
  })

  it('removes what is too old', () => {
    memory.keep('0.8.0')
    const old = join(folder, 'trials', 'old')
    writeFileSync(old, '')
    utimesSync(old, 0, 0)
    memory.keep('0.8.0')
    expect(readdirSync(join(folder, 'trials'))).not.toContain('old')
  })

  it('is no failure where there is no place for it', () => {
    const nowhere = createTrialMemory(bwrapPath, () => join(folder, 'no', 'such', 'folder'))
    nowhere.keep('0.8.0')
    nowhere.forget()
    expect(nowhere.recall()).toBeUndefined()
  })
})

describe('a driver with a memory', () => {
  it('keeps that cells opened, and says the same of the machine from memory', async (context) => {
    const tried = await createBwrapDriver({ trials: memory }).probe()
    const lacking = Object.entries(tried.features).flatMap(([name, { available }]) => (available ? [] : [name]))
    if (memory.recall() === undefined && (!tried.available || lacking.length > 0)) context.skip(`not to be had here: ${lacking.join(', ') || 'cells'}`)
    expect(memory.recall()).toBeDefined()
    expect(await createBwrapDriver({ trials: memory }).probe()).toEqual(tried)
  })

  it('opens no cell that the memory is wrong about, and forgets', async () => {
    memory.keep('0.8.0')
    const driver = createBwrapDriver({ trials: memory, programs: { warden: '/bin/false' } })
    const spec = {
      id: 'a'.repeat(20),
      root: { name: 'trial', binds: [{ source: '/usr', target: '/usr' }], symlinks: [], shell: '/bin/sh', env: {} },
      limits: { memoryBytes: 2 ** 26, cpus: 1, cpuTimeMs: undefined, timeMs: 1000, diskBytes: 65_536, inodes: 64, fileSizeBytes: 65_536 },
      rootMode: 'readonly' as const,
      mounts: [],
      commands: undefined,
    }
    const limits = {
      ...spec.limits,
      openFiles: 64,
      processes: 16,
      readBytesPerSecond: undefined,
      writeBytesPerSecond: undefined,
      outputBytes: 1024,
      stated: [],
    }
    await expect(driver.open({ ...spec, limits }, AbortSignal.timeout(10_000))).rejects.toMatchObject({ name: 'SandboxError' })
    expect(memory.recall()).toBeUndefined()
  })
})
