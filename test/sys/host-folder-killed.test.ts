import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { localFiles } from '../../src/sys/host-folder.js'
import { startScript } from './run-script.js'
import { craftTar, inPieces } from './tar-archives.js'

const memory = '/dev/shm'
const isApart = existsSync(memory) && statSync(memory).dev !== statSync(tmpdir()).dev

const next = (path: string): Promise<unknown> => localFiles.receiveFolder(path, inPieces(craftTar([{ name: 'later', content: 'later' }])), { overwrite: true })

describe.skipIf(!isApart)('a download to another file system whose process is killed while it copies', () => {
  let home: string
  let there: string
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'gbx-killed-'))
    there = mkdtempSync(join(memory, 'gbx-killed-'))
    vi.stubEnv('GLOVEBOX_CACHE_DIR', join(home, 'cache'))
  })
  afterEach(() => {
    vi.unstubAllEnvs()
    for (const folder of [home, there]) rmSync(folder, { recursive: true })
  })

  async function killed(out: string, watched: string, copied: string): Promise<void> {
    const { ended } = await startScript(new URL('programs/download-killed.ts', import.meta.url), [out, watched, copied])
    expect(await ended).toMatchObject({ signal: 'SIGKILL', stderr: '' })
  }

  const drafts = (): string[] => readdirSync(there, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.draft'))
  const waiting = (): string[] => readdirSync(join(home, 'cache')).filter((name) => name.startsWith('glovebox-download-'))

  test('leaves nothing once something else is downloaded to the same place', async () => {
    await killed(join(there, 'out'), there, 'draft/d/f')
    expect([drafts().length, waiting().length, existsSync(join(there, 'out'))]).toEqual([1, 1, false])
    await next(join(there, 'other'))
    expect([readdirSync(there), waiting()]).toEqual([['other'], []])
  })

  test('leaves nothing in a folder that was to be filled, however deep', async () => {
    mkdirSync(join(there, 'out', 'd'), { recursive: true })
    writeFileSync(join(there, 'out', 'd', 'mine'), 'mine')
    await killed(join(there, 'out'), join(there, 'out', 'd'), 'draft$')
    expect(drafts().length).toBeGreaterThan(0)
    await next(join(there, 'out'))
    expect(readdirSync(there, { recursive: true }).sort()).toEqual(['out', 'out/d', 'out/d/mine', 'out/later'])
  })

  test('has no other folder removed that somebody gave the name of the one it left, nor one of the same name elsewhere', async () => {
    await killed(join(there, 'out'), there, 'draft/d/f')
    const [name = ''] = drafts()
    renameSync(join(there, name), join(there, 'kept'))
    mkdirSync(join(there, name))
    writeFileSync(join(there, name, 'mine'), 'mine')
    await next(join(there, 'other'))
    expect(readFileSync(join(there, name, 'mine'), 'utf8')).toBe('mine')
    expect(readdirSync(there).sort()).toEqual([name, 'kept', 'other'])
  })
})
