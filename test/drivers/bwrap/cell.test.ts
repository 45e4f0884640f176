import { randomUUID } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import { innerPid } from '../../../src/sys/posture/process-tree.js'
import { findProcesses, parentOf } from '../../../src/sys/processes.js'
import { type Guest, openGuest } from './open-guest.js'
import { testUnless } from '../../unless.js'

const isRoot = process.getuid?.() === 0
const canary = join(tmpdir(), `gbx-canary-${randomUUID()}`)
let guest: Guest

beforeAll(async () => {
  writeFileSync(canary, 'canary', { mode: 0o644 })
  guest = await openGuest({ limits: { diskBytes: 2 ** 20 } })
})

afterAll(async () => {
  await guest[Symbol.asyncDispose]()
  rmSync(canary)
})

/** The cell's first process as the host sees it: a child of our child, and the first in its own eyes. */
function wardenPid(): number {
  const [monitor] = findProcesses((pid) => parentOf(pid) === process.pid && /bwrap/.test(readFileSync(`/proc/${pid}/cmdline`, 'latin1')))
  const [warden] = findProcesses((pid) => parentOf(pid) === monitor && innerPid(pid) === 1)
  return warden as number
}

function statusOf(pid: number): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/status`, 'utf8').split('\n')
  return Object.fromEntries(lines.map((line) => line.split(':\t') as [string, string]))
}

describe('what the guest sees', () => {
  test('nothing of the host’s files but /usr', async () => {
    expect(readFileSync(canary, 'utf8')).toBe('canary')
    expect(await guest.sh(`cat ${canary} /etc/shadow /root/.bashrc /home/*/.bashrc 2>&1 | grep -vc -e 'No such file' -e 'Permission denied'`)).toBe('0\n')
    expect((await guest.sh('ls -A /')).split('\n')).toEqual(expect.arrayContaining(['etc', 'usr', 'workspace']))
    expect(await guest.sh('ls /boot /srv /mnt /media /opt /sys /lost+found 2>&1 | grep -vc "No such file"')).toBe('0\n')
  })

  test('only the processes of its cell', async () => {
    const pids = (await guest.sh('ls /proc')).split('\n').filter((name) => /^\d+$/.test(name))
    expect(pids[0]).toBe('1')
    expect(pids.length).toBeLessThan(8)
  })

  test('a /dev of plain devices, with terminals of its own', async () => {
    expect((await guest.sh('ls /dev')).trim().split('\n')).toEqual([
      'fd',
      'full',
      'null',
      'ptmx',
      'pts',
      'random',
      'shm',
      'stderr',
      'stdin',
      'stdout',
      'tty',
      'urandom',
      'zero',
    ])
    expect(await guest.sh('ls /dev/pts; head -c 4 /dev/zero | od -An -tx1; echo gone > /dev/null; head -c 1 /dev/zero > /dev/full')).toMatch(
      /^ptmx\n 00 00 00 00\n.*No space left/s,
    )
    expect(await guest.sh('echo x > /dev/tty')).toContain('No such device or address')
  })

  test('no network but a loopback, and a host name that is not the host’s', async () => {
    expect(await guest.sh('tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " "')).toBe('lo\n')
    expect(await guest.sh('hostname 2>/dev/null || cat /proc/sys/kernel/hostname')).toBe('glovebox\n')
  })

  test('nothing in /proc that speaks of the machine’s insides', async () => {
    for (const path of ['kallsyms', 'kcore', 'keys', 'timer_list', 'interrupts']) expect(await guest.sh(`cat /proc/${path} 2>/dev/null | wc -c`)).toBe('0\n')
  })

  test('no environment that was not given', async () => {
    expect((await guest.sh('env | cut -d= -f1 | sort | tr "\\n" " "')).trim().split(' ')).toEqual(['LANG', 'PATH', 'PWD'])
  })
})

describe('what the guest can write', () => {
  test('its folders, which share one budget', async () => {
    expect(await guest.sh('for d in /workspace /tmp /var/tmp /dev/shm /home/user; do echo hello > $d/f && cat $d/f; done; rm /*/f /*/*/f 2>/dev/null')).toBe(
      'hello\n'.repeat(5),
    )
    expect(await guest.sh('head -c 700000 /dev/zero > /tmp/a; head -c 700000 /dev/zero > /workspace/b; stat -c %s /tmp/a; rm -f /tmp/a /workspace/b')).toMatch(
      /No space left on device\n700000\n$/,
    )
  })

  test('no more files than its disk has room for', async () => {
    expect(await guest.sh('mkdir /tmp/many; cd /tmp/many; seq 2000 | xargs touch 2>/dev/null; ls | wc -l; cd /; rm -rf /tmp/many')).toMatch(
      /^(9\d\d|10[0-2]\d)\n$/,
    )
  })

  test('nothing else: root, /dev, /etc, /usr and the kernel’s switches are read-only', async () => {
    for (const folder of ['/', '/dev', '/etc', '/usr', '/usr/bin', '/run', '/var', '/home']) {
      expect(await guest.sh(`touch ${folder}/planted`)).toMatch(/Read-only file system|Permission denied/)
    }
    expect(await guest.sh('echo x > /proc/sys/kernel/core_pattern')).toMatch(/Read-only file system|Permission denied/)
  })

  testUnless(!isRoot && 'only root can give a cell more than one id')('not even as root of the cell', async () => {
    for (const path of ['/planted', '/dev/planted', '/etc/passwd', '/usr/bin/planted', '/proc/sys/net/ipv4/ip_forward', '/proc/sys/kernel/core_pattern']) {
      expect(await guest.sh(`echo 1 > ${path}`, 'root')).toMatch(/Read-only file system|Permission denied/)
    }
    expect(await guest.sh('id -u; echo mine > /root/f; cat /root/f; chown 1000:1000 /root/f; stat -c %u /root/f', 'root')).toBe('0\nmine\n1000\n')
  })

  test('neither mounts nor namespaces nor the warden', async () => {
    expect(await guest.sh('mount -t tmpfs none /tmp 2>&1; ls /proc/1/fd /proc/1/cwd/ 2>&1; cat /proc/1/environ 2>&1')).not.toContain('GLOVEBOX')
    expect(await guest.sh('kill -9 1; kill -STOP 1; echo still here')).toContain('still here')
    expect(await guest.sh('umount /proc/kallsyms 2>&1; cat /proc/kallsyms | wc -c')).toMatch(/0\n$/)
  })
})

describe('the warden, seen from the host', () => {
  test('has only the capabilities it still needs, and a range of ids of its own where there is one', () => {
    const status = statusOf(wardenPid())
    const uid = Number(status.Uid?.split('\t')[0])
    // CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE; with a single id only SETPCAP.
    expect(status).toMatchObject({ CapPrm: isRoot ? '00000000000005fb' : '0000000000000100', CapAmb: '0000000000000000', NoNewPrivs: '1' })
    if (isRoot) expect([uid >= 0x78000000, (uid - 0x78000000) % 65_536]).toEqual([true, 65_532])
    else expect(uid).toBe(process.getuid?.())
  })

  test('is in namespaces that are not ours', async () => {
    const pid = wardenPid()
    const inside = await guest.sh('for n in cgroup ipc mnt net pid user uts; do readlink /proc/self/ns/$n; done')
    expect(inside.trim().split('\n')).toHaveLength(7)
    expect(statusOf(pid).NSpid?.split('\t').at(-1)).toBe('1')
  })
})

describe('opening', () => {
  test('with a signal that is aborted already opens nothing', async () => {
    const reason = new Error('no')
    const driver = createBwrapDriver()
    await expect(driver.open({} as never, AbortSignal.abort(reason))).rejects.toBe(reason)
  })

  test('with a source that does not exist is unavailable, in the words of whoever noticed', async () => {
    const root = { name: 'bad', binds: [{ source: '/nowhere/at/all', target: '/usr' }], symlinks: [], shell: '/bin/sh', env: {} }
    await expect(openGuest({ root })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/(launcher: open|bwrap: .*) .*\/nowhere\/at\/all: No such file or directory/) as string,
    })
  })

  test('is found to work by trying, and the answer is kept', async () => {
    const driver = createBwrapDriver()
    const probe = await driver.probe()
    expect(probe).toMatchObject({ driver: 'bwrap', available: true, obstacles: [], isolates: true, filtersSyscalls: true })
    expect(probe.users.root.available).toBe(isRoot)
    expect(await driver.probe()).toBe(probe)
  })
})
