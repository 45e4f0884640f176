/** Cells that the launcher builds itself, beside the same cells built by bwrap. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { CellSpec, Driver } from '../../../src/contract/driver.js'
import { createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import { bwrapPath } from '../../../src/drivers/bwrap/facts.js'
import { nativeProgram } from '../../../src/sys/native.js'
import { innerPid } from '../../../src/sys/posture/process-tree.js'
import { capture } from '../../../src/sys/spawn.js'
import { findProcesses, parentOf } from '../../../src/sys/processes.js'
import { testUnless } from '../../unless.js'
import { type Guest, openGuest } from './open-guest.js'
import { wordyLauncher } from './planted-drivers.js'

const lacking = process.getuid?.() !== 0 && 'only root can give a cell ids of its own'
const byLauncher = (): Driver => createBwrapDriver()
const byBwrap = (): Driver => createBwrapDriver({ programs: { bwrap: bwrapPath() as string } })

/** The monitor of the one cell of this process, which is the parent of its first process. */
function monitorOf(): number {
  const first = findProcesses((pid) => innerPid(pid) === 1 && parentOf(parentOf(pid) ?? 0) === process.pid)
  return parentOf(first[0] as number) as number
}

/** All that a program sees of how its cell was built, without what differs from cell to cell. */
const view = `ls -lanR / 2>/dev/null --ignore=proc --ignore=usr --ignore=etc
cut -d' ' -f5- /proc/self/mountinfo
cat /proc/net/dev /proc/net/route /proc/net/ipv6_route /proc/self/uid_map /proc/sys/kernel/hostname | tr -s ' '
tr '\\0' '\\n' < /proc/1/environ; readlink /proc/1/cwd /proc/1/root
grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|SigIgn|SigBlk)' /proc/1/status; umask; getent ahosts localhost`

async function seen(driver: Driver, spec: Partial<CellSpec>): Promise<string> {
  await using guest: Guest = await openGuest({ driver, spec })
  const said = await guest.sh(view)
  // Its ids, how old its folders are, and numbers of descriptors and of what the host has.
  return said
    .replaceAll(/20[01]\d{7}/g, 'ID')
    .replaceAll(/(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d+ [\d:]+/g, 'DATE')
    .replaceAll(/\/proc\/self\/fd\/\d+/g, 'SOURCE')
}

describe('a cell that the launcher builds', () => {
  for (const rootMode of ['readonly', 'overlay'] as const) {
    testUnless(lacking)(`is the same from inside as one that bwrap builds, with root: '${rootMode}'`, async () => {
      const ours = await seen(byLauncher(), { rootMode })
      const others = await seen(byBwrap(), { rootMode })
      // bwrap's root is a folder of its tmpfs, and has the mode of folders; ours is one.
      expect(ours.replace('tmpfs rw,mode=755,uid', 'tmpfs rw,uid')).toBe(others)
    })
  }

  testUnless(lacking)('is as every cell must be, and no bwrap is beside it', async () => {
    for (const [driver, program] of [
      [byLauncher(), nativeProgram('launcher')],
      [byBwrap(), bwrapPath()],
    ] as const) {
      await using guest = await openGuest({ driver })
      expect(readlinkSync(`/proc/${monitorOf()}/exe`)).toBe(program)
      const [posture] = await guest.cell.posture({ kind: 'cell' })
      const found = new Map(posture?.observations.map(({ control, value }) => [control, value]))
      for (const { control, value } of guest.cell.expects) expect([control, found.get(control)]).toEqual([control, value])
    }
  })

  testUnless(lacking)('has a monitor that may do nothing, outside of what was staged for the cell', async () => {
    await using _guest = await openGuest({ driver: byLauncher() })
    const status = readFileSync(`/proc/${monitorOf()}/status`, 'utf8')
    expect(status).toMatch(/^CapPrm:\t0{16}$/m)
    expect(status).toMatch(/^CapInh:\t0{16}$/m)
    expect(status).toMatch(/^NoNewPrivs:\t1$/m)
    expect(Number(/^Uid:\t(\d+)/m.exec(status)?.[1])).toBeGreaterThanOrEqual(0x78000000)
    expect(readlinkSync(`/proc/${monitorOf()}/ns/mnt`)).toBe(readlinkSync('/proc/self/ns/mnt'))
  })

  testUnless(lacking)('is left to bwrap when there is a word that the launcher does not know', async () => {
    const place = mkdtempSync(join(tmpdir(), 'glovebox-test-'))
    try {
      const launcher = wordyLauncher(place, { '--unshare-all': ['--unshare-all', '--new-session'] })
      await using guest = await openGuest({ driver: createBwrapDriver({ programs: { launcher } }) })
      expect(readlinkSync(`/proc/${monitorOf()}/exe`)).toBe(bwrapPath())
      expect(await guest.sh('echo there')).toBe('there\n')
    } finally {
      rmSync(place, { recursive: true })
    }
  })
})

/** A launcher with little to do: what it prints is what the program sees. */
function build(place: string, words: readonly string[], script: string): ReturnType<typeof capture> {
  const before = [
    '--stage',
    'tree',
    place,
    '--stage',
    'usr',
    '/usr',
    '--map',
    '2013265920',
    '65536',
    '3',
    '4',
    '--build',
    '--drop',
    '2013331452',
    '--',
    '/usr/bin/bwrap',
  ]
  const fixed = [
    '--unshare-all',
    '--hostname',
    'h',
    '--cap-drop',
    'ALL',
    '--ro-bind',
    '/tmp/usr',
    '/usr',
    '--symlink',
    'usr/lib',
    '/lib',
    '--symlink',
    'usr/lib64',
    '/lib64',
    '--proc',
    '/proc',
  ]
  return capture([nativeProgram('launcher'), ...before, ...fixed, ...words, '--', '/usr/bin/sh', '-c', script], { timeoutMs: 20_000 })
}

describe('a place in the root of a cell', () => {
  testUnless(lacking)('is never found outside of it, whatever links lie on the way', async () => {
    const place = mkdtempSync(join(tmpdir(), 'glovebox-test-'))
    try {
      chmodSync(place, 0o755)
      mkdirSync(join(place, 'tree'))
      writeFileSync(join(place, 'tree/mark'), 'of the tree')
      mkdirSync(join(place, 'outside'))
      symlinkSync(join(place, 'outside'), join(place, 'tree/link'))
      symlinkSync('../../../../..', join(place, 'tree/up'))
      const words = ['--bind', '/tmp/tree', '/t', '--ro-bind', '/tmp/tree/tree/mark', '/t/tree/up/found']
      const { code, stdout } = await build(place, words, 'cat /found && ls /t/tree')
      expect([code, stdout.toString()]).toEqual([0, 'of the treelink\nmark\nup\n'])
      // What the link leads to is not there in the cell, and nothing is made of it on the host.
      const refused = await build(place, ['--ro-bind', '/tmp/tree', '/t', '--ro-bind', '/tmp/usr', '/t/tree/link/usr'], 'true')
      expect([refused.code, refused.stderr]).toEqual([71, expect.stringContaining('launcher: make /t/tree/link')])
      expect(readFileSync(join(place, 'tree/mark'), 'utf8')).toBe('of the tree')
    } finally {
      rmSync(place, { recursive: true })
    }
  })

  testUnless(lacking)('gives the program no capability that was not asked for', async () => {
    const place = mkdtempSync(join(tmpdir(), 'glovebox-test-'))
    try {
      const told = (
        await build(place, ['--cap-add', 'CAP_KILL'], 'while read -r line; do case $line in Cap*) echo $line; esac; done < /proc/self/status')
      ).stdout.toString()
      expect(told.split('\n')).toEqual([...['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map((name) => `${name}: 0000000000000020`), ''])
    } finally {
      rmSync(place, { recursive: true })
    }
  })
})
