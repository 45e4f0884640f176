import { readFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { findProcesses, parentOf } from '../../src/sys/processes.js'
import { resizeDisk } from '../../src/sys/resize-disk.js'
import { type Guest, openGuest } from '../drivers/bwrap/open-guest.js'

const isRoot = process.getuid?.() === 0
const MiB = 2 ** 20
let guest: Guest

afterEach(async () => {
  await guest?.[Symbol.asyncDispose]()
})

/** The cell's first process as this machine counts: the child of our child that is the first of its own. */
function wardenPid(): number {
  const [monitor] = findProcesses((pid) => parentOf(pid) === process.pid && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('bwrap'))
  return findProcesses((pid) => parentOf(pid) === monitor && /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${pid}/status`, 'latin1')))[0] as number
}

for (const rootMode of isRoot ? (['readonly', 'overlay'] as const) : (['readonly'] as const)) {
  test(`the disk of a live cell whose root is ${rootMode} grows and shrinks, but never below what is in use`, async () => {
    guest = await openGuest({ spec: { rootMode }, limits: { diskBytes: MiB, inodes: 500 } })
    const pid = wardenPid()
    const size = () => guest.sh('df --output=size,itotal -B1 /tmp | tail -1 | tr -s " "; grep -c " /tmp .*noexec" /proc/self/mounts')
    await resizeDisk({ pid, bytes: 4 * MiB, inodes: 900 })
    expect((await size()).trim()).toBe(`${4 * MiB} 900\n0`)
    expect(await guest.sh('head -c 3m /dev/zero > /workspace/a && stat -c %s /workspace/a')).toBe(`${3 * MiB}\n`)
    await expect(resizeDisk({ pid, bytes: 2 * MiB, inodes: 900 })).rejects.toMatchObject({
      code: 'conflict',
      message: 'limits.disk: more than 2m are in use',
    })
    await expect(resizeDisk({ pid, bytes: 4 * MiB, inodes: 2 })).rejects.toMatchObject({ code: 'conflict', message: 'limits.inodes: more than 2 are in use' })
    expect((await size()).trim()).toBe(`${4 * MiB} 900\n0`)
    await guest.sh('rm /workspace/a')
    await resizeDisk({ pid, bytes: 2 * MiB, inodes: 800 })
    expect((await size()).trim()).toBe(`${2 * MiB} 800\n0`)
    expect(await guest.sh('head -c 3m /dev/zero > /tmp/a; stat -c %s /tmp/a')).toMatch(/No space left on device\n\d+\n$/)
  })
}

test('what is no disk, and a process that is gone, are told as such', async () => {
  guest = await openGuest()
  const pid = wardenPid()
  await expect(resizeDisk({ pid, bytes: MiB, inodes: 100, path: '/proc' })).rejects.toMatchObject({
    code: 'unsupported',
    message: 'limits.disk cannot be changed: launcher: find a disk at /proc: Invalid argument',
  })
  await expect(resizeDisk({ pid: 2 ** 22 + 1, bytes: MiB, inodes: 100 })).rejects.toMatchObject({
    code: 'unsupported',
    message: expect.stringContaining('No such process') as string,
  })
})
