import { spawnSync } from 'node:child_process'
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { Receipt } from '../../src/contract/receipt.js'
import { cliPath } from '../cli/cli.js'
import { startScript } from '../sys/run-script.js'
import { testUnless } from '../unless.js'

const ordinaryId = 65_534
const isRoot = process.getuid?.() === 0

/** In a mount namespace of its own, so that nobody else sees it. */
const hidden = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', 'mount -t proc -o hidepid=2 none /proc && exec "$0" "$@"']

describe('where /proc shows nobody the processes of others', () => {
  testUnless(!isRoot && 'only root can mount another /proc')('an ordinary user is told of its own sandbox all the same', async ({ skip }) => {
    const place = mkdtempSync(join(tmpdir(), 'gbx-hidden-'))
    chownSync(place, ordinaryId, ordinaryId)
    const own = ['env', `HOME=${place}`, `TMPDIR=${place}`, ...['CACHE', 'STATE', 'KEY', 'SNAPSHOT'].map((name) => `GLOVEBOX_${name}_DIR=${place}/${name}`)]
    const ordinary = ['setpriv', '--reuid', String(ordinaryId), '--regid', String(ordinaryId), '--clear-groups']
    const wrapper = [...hidden, ...own, ...ordinary]
    const { ended } = await startScript(new URL('programs/among-hidden.ts', import.meta.url), [], wrapper)
    const { stdout, stderr, code } = await ended
    const receiptPath = join(place, 'receipt')
    const run = spawnSync(wrapper[0] as string, [
      ...wrapper.slice(1),
      process.execPath,
      cliPath,
      'run',
      '--receipt',
      receiptPath,
      '--',
      'sh',
      '-c',
      'sleep 60 & echo on',
    ])
    const receipt = run.status === 0 ? (JSON.parse(readFileSync(receiptPath, 'utf8')) as Receipt) : undefined
    rmSync(place, { recursive: true })
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
    const { lacking, ...told } = JSON.parse(stdout) as { lacking?: unknown }
    if (lacking !== undefined) skip(`this user can open no cell here: ${JSON.stringify(lacking)}`)
    expect(told).toEqual({ isShown: false, processes: 3, isCounted: true, text: 'text' })
    const verdicts = receipt?.controls.filter(({ control }) => control === 'namespaces').map(({ verdict }) => verdict)
    expect([run.stdout.toString(), [...new Set(verdicts)]]).toEqual(['on\n', ['proven']])
    expect(receipt?.inspected.processes).toBeGreaterThan(0)
  })
})
