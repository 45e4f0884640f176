import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import { type CellCgroupOrder, createCellCgroup, planCellCgroup } from '../../../src/sys/cell-cgroup.js'
import { kernelTree } from '../../../src/sys/cgroup-files.js'
import { parseCgroupMounts } from '../../../src/sys/cgroup-mounts.js'
import type { CgroupOrder, Cgroups } from '../../../src/sys/cgroups.js'
import { testUnless } from '../../unless.js'
import { openGuest } from './open-guest.js'

const texts = { mountinfo: readFileSync('/proc/self/mountinfo', 'utf8'), cgroup: readFileSync('/proc/self/cgroup', 'utf8') }
const mount = parseCgroupMounts(texts).find(({ version }) => version === 2)
const reason = process.getuid?.() !== 0 ? 'only root may make groups at the top' : mount === undefined && 'cgroups of version 2 are not mounted here'
const prefix = `glovebox-unified-${process.pid}.`

/** Version 2 alone, as far as it goes where its controllers are bound to version 1. */
function unified(): Cgroups {
  const not = { enforced: false, why: 'not tried' } as const
  const hierarchies = [{ version: 2, base: mount?.mountPoint ?? '', controllers: ['cpuacct'] }] as const
  const order = ({ id, writer, ...limits }: CgroupOrder): CellCgroupOrder => ({ hierarchies, tree: kernelTree, name: `${prefix}${id}`, limits, writer })
  return {
    enforces: { memory: not, cpus: not, cpuTime: not, processes: not, readRate: not, writeRate: not },
    freezes: { enforced: true, by: 'cgroup v2' },
    create: (asked) => createCellCgroup(order(asked)),
    plan: (asked) => planCellCgroup(order(asked)),
    sweep: () => Promise.resolve(0),
  }
}

testUnless(reason)('in version 2 a program enters the group of its run from within the cell’s own namespace, and is counted there', async () => {
  const guest = await openGuest({ driver: createBwrapDriver({ cgroups: unified() }), limits: { cpus: 2 } })
  const run = await guest.run('grep ^0: /proc/self/cgroup; grep ^0: /proc/1/cgroup')
  expect(run.said).toBe('0::/guest/r1\n0::/warden\n')
  expect(run.counts.cpuMs).toBeGreaterThan(0)
  await guest[Symbol.asyncDispose]()
  expect(readdirSync(mount?.mountPoint ?? '').filter((name) => name.startsWith(prefix))).toEqual([])
})

testUnless(reason)('in version 2 a cell is paused and resumed, and closed while it is paused', async () => {
  const guest = await openGuest({ driver: createBwrapDriver({ cgroups: unified() }), limits: { cpus: 2 } })
  await guest.run('(setsid sh -c "trap : TERM HUP; while :; do :; done" >/dev/null 2>&1 &)')
  const used = async (): Promise<number> => (await guest.cell.usage()).cpuMs as number
  while ((await used()) < 50) await sleep(5)
  await guest.cell.pause()
  const before = await used()
  await sleep(300)
  expect(await used()).toBe(before)
  await guest.cell.resume()
  while ((await used()) < before + 50) await sleep(5)
  await guest.cell.pause()
  const begun = performance.now()
  await guest[Symbol.asyncDispose]()
  expect(performance.now() - begun).toBeLessThan(5000)
  expect(readdirSync(mount?.mountPoint ?? '/').filter((name) => name.startsWith(prefix))).toEqual([])
})
