import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type CellCgroup, createCellCgroup } from '../../src/sys/cell-cgroup.js'
import { kernelTree } from '../../src/sys/cgroup-files.js'
import { parseCgroupMounts } from '../../src/sys/cgroup-mounts.js'
import { randomId } from '../../src/sys/random-id.js'
import { skipGroup } from '../unless.js'
import { endOf, python, startIn } from './cgroup-programs.js'

/** The kernel's own tree of version 2: who may move where, and what is counted, also where its controllers are bound to version 1. */
const texts = { mountinfo: readFileSync('/proc/self/mountinfo', 'utf8'), cgroup: readFileSync('/proc/self/cgroup', 'utf8') }
const mount = parseCgroupMounts(texts).find(({ version }) => version === 2)
const isRoot = process.getuid?.() === 0
const writer = 0x78fefffc
let cell: CellCgroup

const unlimited = { memoryBytes: undefined, processes: undefined }
const text = (...path: string[]): string => readFileSync(join(...path), 'latin1').trim()

/** A shell that does what it reads. */
async function shellIn(doors: readonly string[], owner = 0) {
  const become = ['setpriv', `--reuid=${owner}`, `--regid=${owner}`, '--clear-groups', '/bin/sh']
  const child = spawn('/bin/sh', ['-c', `${doors.map((door) => `echo 0 > ${door} && `).join('')}exec "$@"`, 'sh', ...become], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const ask = (line: string): Promise<string> =>
    new Promise((resolve) => {
      child.stdout.once('data', (bytes: Buffer) => resolve(bytes.toString().trim()))
      child.stdin.write(`${line}\n`)
    })
  await ask('echo up')
  return { ask, end: () => (child.stdin.end(), endOf(child)) }
}

describe('a cell in the kernel’s own version 2', () => {
  skipGroup(!isRoot ? 'only root may make groups at the top' : mount === undefined && 'cgroups of version 2 are not mounted here')

  beforeEach(async () => {
    if (!isRoot || mount === undefined) return
    const hierarchies = [{ version: 2, base: mount.mountPoint, controllers: ['cpuacct'] }] as const
    const limits = { memoryBytes: 2 ** 26, cpus: 1, processes: 20 }
    cell = await createCellCgroup({ hierarchies, tree: kernelTree, name: `glovebox-test.${randomId()}`, limits, writer })
  })
  afterEach(async () => {
    if (isRoot && mount !== undefined) await cell.remove()
  })

  it('puts what entered beside its guests, and lets the warden, and nobody else, put a program into its run', async () => {
    const [warden, stranger] = [await shellIn(cell.joins, writer), await shellIn([], writer)]
    cell.settle()
    const folder = join(cell.joins[0] as string, '..')
    expect([text(folder, 'cgroup.procs'), text(folder, 'warden/cgroup.procs').split('\n').length]).toEqual(['', 1])
    const run = cell.beginRun(unlimited)
    const door = join(cell.places(run.name)[0] as string, 'cgroup.procs')
    const enter = `(echo 0 > ${door}) 2>/dev/null && echo in || echo out`
    expect([await warden.ask(enter), await stranger.ask(enter)]).toEqual(['in', 'out'])
    await Promise.all([warden.end(), stranger.end()])
  })

  it('counts the processor time of a run by itself, and keeps it for the cell when the run is gone', async () => {
    cell.settle()
    const [busy, idle] = [cell.beginRun(unlimited), cell.beginRun(unlimited)]
    const burn = 'import time\nwhile time.process_time() < 1: pass\nprint(time.process_time())'
    const burnt = 1000 * Number((await endOf(startIn([join(cell.places(busy.name)[0] as string, 'cgroup.procs')], python(burn)))).stdout)
    const { cpuMs = 0 } = busy.counts()
    expect(Math.abs(cpuMs - burnt)).toBeLessThan(0.1 * burnt)
    expect(idle.counts().cpuMs).toBe(0)
    for (const run of [busy, idle]) run.close()
    expect(Math.abs((cell.usage().cpuMs ?? 0) - burnt)).toBeLessThan(0.1 * burnt)
  })

  it('is killed and removed with its runs', async () => {
    cell.settle()
    const place = cell.places(cell.beginRun(unlimited).name)[0] as string
    const left = endOf(startIn([join(place, 'cgroup.procs')], ['sleep', '60']))
    while (text(place, 'cgroup.procs') === '') await sleep(2)
    await cell.remove()
    expect([(await left).signal, existsSync(join(cell.joins[0] as string, '..'))]).toEqual(['SIGKILL', false])
  })
})
