import { spawnSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { testUnless } from '../unless.js'
import { startScript } from './run-script.js'

const isRoot = process.getuid?.() === 0
/** Whatever is mounted in there goes with it. */
const apart = ['unshare', ...(isRoot ? [] : ['--map-root-user']), '--mount', '--propagation', 'private']
const trial = spawnSync(apart[0] as string, [...apart.slice(1), 'mount', '-t', 'tmpfs', 'none', '/mnt'])
const lacking = trial.status !== 0 && `nothing can be mounted here: ${String(trial.stderr)}`

let home: string

beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-full-')))
})
afterEach(() => rmSync(home, { recursive: true }))

const full = (what: string, hint: string): unknown => ({ code: 'full', message: expect.stringContaining(what) as string, hint })

testUnless(lacking, { timeout: 60_000 })('a download that fills a disk of the host is told which, and leaves what was there and nothing else', async () => {
  const { ended } = await startScript(new URL('programs/download-full.ts', import.meta.url), [home, isRoot ? 'bwrap' : 'fake'], apart)
  const { stdout, stderr, code } = await ended
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
  const disk = `df -h -- '${home}/disk'`
  const place = `df -h -- '${home}/place'`
  const kept = ['there', 'there/a', 'there/new']
  expect(JSON.parse(stdout)).toEqual({
    file: [full(`${home}/disk/file on this machine has no room left on its disk`, disk), []],
    folder: [full(`${home}/disk/folder on this machine has no room left on its disk`, disk), []],
    merged: [full(`${home}/disk/there on this machine has no room left on its disk`, disk), kept, 'old'],
    small: ['done', [...kept, 'there/small']],
    staged: [full(`there is no room left in ${home}/place`, place), []],
    stagedFile: [full(`there is no room left in ${home}/place`, place), []],
    home: [],
  })
})
