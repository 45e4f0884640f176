import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const lockModule = new URL('../../scripts/setup/lock.mjs', import.meta.url).href
let place: string

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'glovebox-lock-'))
})
afterEach(() => rmSync(place, { recursive: true, force: true }))

/** A process that takes the lock, writes `in` and `out` around a short stay, and releases it. */
function visitor(onWords: () => void = () => undefined): Promise<{ readonly code: number | null; readonly stderr: string }> {
  const program = `
    import { appendFileSync } from 'node:fs'
    import { takeLock } from ${JSON.stringify(lockModule)}
    const release = await takeLock(${JSON.stringify(join(place, 'lock'))}, { onWait: ({ pid }) => console.error('waits for', pid), pauseMs: 1 })
    appendFileSync(${JSON.stringify(join(place, 'log'))}, 'in\\n')
    await new Promise((resolve) => setTimeout(resolve, 20))
    appendFileSync(${JSON.stringify(join(place, 'log'))}, 'out\\n')
    release()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
    onWords()
  })
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stderr })))
}

function log(): string {
  return readFileSync(join(place, 'log'), 'utf8')
}

function leaveRecord(owner: { readonly pid: number; readonly started: string }): void {
  mkdirSync(join(place, 'lock'))
  writeFileSync(join(place, 'lock/7'), JSON.stringify(owner))
}

describe('the lock of a set-up', () => {
  it('lets in one at a time, whoever comes', async () => {
    appendFileSync(join(place, 'log'), '')
    const ends = await Promise.all(Array.from({ length: 8 }, () => visitor()))
    expect(ends.map(({ code }) => code)).toEqual(Array.from({ length: 8 }, () => 0))
    expect(log()).toBe('in\nout\n'.repeat(8))
  })

  it('is taken over from a process that is gone', async () => {
    const { pid } = spawnSync(process.execPath, ['-e', ''])
    leaveRecord({ pid, started: '1' })
    expect(await visitor()).toEqual({ code: 0, stderr: '' })
    expect(readdirSync(join(place, 'lock')).sort()).toEqual(['8', '8.done'])
  })

  it('is taken over when the pid belongs to another process by now', async () => {
    leaveRecord({ pid: process.pid, started: 'long ago' })
    expect(await visitor()).toEqual({ code: 0, stderr: '' })
  })

  it('is taken over from a record that was cut off', async () => {
    mkdirSync(join(place, 'lock'))
    writeFileSync(join(place, 'lock/7'), '{"pi')
    expect(await visitor()).toEqual({ code: 0, stderr: '' })
  })

  it('says for whom it waits', async () => {
    const holder = spawn('sleep', ['60'])
    const { ownerOf } = (await import(lockModule)) as { ownerOf(pid: number): { pid: number; started: string } }
    leaveRecord(ownerOf(holder.pid ?? 0))
    const waiting = visitor(() => holder.kill('SIGKILL'))
    expect(await waiting).toEqual({ code: 0, stderr: `waits for ${holder.pid}\n` })
  })
})
