import { existsSync, readFileSync, statSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { skipGroup } from '../../unless.js'
import { type Guest, openGuest } from './open-guest.js'

const isRoot = process.getuid?.() === 0
const MiB = 2 ** 20

describe('a root that is writable all over', () => {
  skipGroup(!isRoot && 'only root can give a cell ids of its own')
  let guest: Guest
  let neighbour: Guest
  const before = isRoot ? statSync('/etc/passwd').mtimeMs : 0

  beforeAll(async () => {
    if (!isRoot) return
    const spec = { rootMode: 'overlay' } as const
    ;[guest, neighbour] = await Promise.all([openGuest({ spec, limits: { diskBytes: 8 * MiB, inodes: 2000 } }), openGuest({ spec })])
  })

  afterAll(async () => {
    await guest?.[Symbol.asyncDispose]()
    await neighbour?.[Symbol.asyncDispose]()
  })

  test('is changed by root of the cell, and neither the host nor a neighbour sees it', async () => {
    const script = [
      'echo hello > /foo',
      'echo "extra:x:7:7::/:/bin/sh" >> /etc/passwd',
      'mkdir -p /usr/local/lib/gbx-test && cp /bin/true /usr/bin/gbx-true && gbx-true',
      'rm /usr/bin/env && rm -r /etc/ssl',
      'chown user /usr/local/lib/gbx-test',
      'cat /foo; tail -1 /etc/passwd; ls -ld /usr/local/lib/gbx-test | cut -d" " -f3; ls /usr/bin/env /etc/ssl',
    ]
    expect(await guest.sh(script.join('\n'), 'root')).toBe(
      "hello\nextra:x:7:7::/:/bin/sh\nuser\nls: cannot access '/usr/bin/env': No such file or directory\nls: cannot access '/etc/ssl': No such file or directory\n",
    )
    expect(await neighbour.sh('ls /foo /usr/bin/gbx-true 2>/dev/null; grep -c extra /etc/passwd; ls /usr/bin/env', 'root')).toBe('0\n/usr/bin/env\n')
    expect([existsSync('/foo'), existsSync('/usr/bin/gbx-true'), existsSync('/usr/bin/env'), statSync('/etc/passwd').mtimeMs]).toEqual([
      false,
      false,
      true,
      before,
    ])
    expect(readFileSync('/etc/passwd', 'utf8')).not.toContain('extra:x:7:7')
  })

  test('is to the cell’s user what a root is to any user', async () => {
    expect(
      await guest.sh('for f in /bar /etc/passwd /usr/bin/true /usr/new /var/x /root/x; do echo > $f; done 2>&1 | sed "s/.*: //" | sort | uniq -c'),
    ).toMatch(/^ +6 Permission denied\n$/)
    expect(await guest.sh('for d in /workspace /tmp /var/tmp /home/user /dev/shm; do echo x > $d/f && cat $d/f && rm $d/f; done')).toBe('x\n'.repeat(5))
    expect(await guest.sh('stat -c "%U %a %n" / /etc /usr /tmp /var/tmp /root /home/user /workspace /dev/shm')).toBe(
      'root 755 /\nroot 755 /etc\nroot 755 /usr\nroot 1777 /tmp\nroot 1777 /var/tmp\nroot 700 /root\nuser 755 /home/user\nuser 755 /workspace\nroot 1777 /dev/shm\n',
    )
  })

  test('counts as the cell’s disk, wherever it is written', async () => {
    const fill = 'head -c 5m /dev/zero > /usr/a; head -c 5m /dev/zero > /dev/shm/b; stat -c %s /usr/a; rm /usr/a /dev/shm/b'
    expect(await guest.sh(fill, 'root')).toBe("head: error writing 'standard output': No space left on device\n5242880\n")
    expect(await guest.sh('mkdir /etc/many; cd /etc/many; seq 3000 | xargs touch 2>&1 | tail -1; ls | wc -l; rm -r /etc/many', 'root')).toMatch(
      /No space left on device\n1[5-9]\d\d\n$/,
    )
  })

  test('shows nothing that the host keeps from everyone but root', async () => {
    const hidden = 'find /usr /etc -xdev \\( -type f ! -perm -o+r -o -type d ! -perm -o+rx \\) ! -path "/etc/many*" | wc -l'
    expect(await neighbour.sh(hidden, 'root')).toBe('0\n')
    expect(await neighbour.sh('ls -d /usr/share/man /usr/lib /usr/bin | wc -l', 'root')).toBe('3\n')
  })

  test('leaves /dev, /proc/sys and what is masked as closed as ever', async () => {
    const denied = await guest.sh(
      'echo x > /dev/x; echo 1 > /proc/sys/kernel/hostname; cat /proc/kallsyms | wc -c; mknod /n c 1 3; chmod 666 /dev/null',
      'root',
    )
    expect(denied).toMatch(
      /^.*\/dev\/x: Read-only file system\n.*hostname: (Read-only file system|Permission denied)\n0\nmknod: .*(Operation not permitted)\nchmod: .*(Read-only file system|Operation not permitted)\n$/,
    )
  })

  test('takes mounts in, and is refused together with a list of commands', async () => {
    const withMount = await openGuest({ spec: { rootMode: 'overlay', mounts: [{ source: '/usr/share/doc', target: '/workspace/doc', mode: 'ro' }] } })
    try {
      expect(await withMount.sh('touch /workspace/doc/x; stat -c %U /workspace', 'root')).toBe(
        "touch: cannot touch '/workspace/doc/x': Read-only file system\nuser\n",
      )
    } finally {
      await withMount[Symbol.asyncDispose]()
    }
    const commands = { executable: [], readable: [], unlisted: undefined }
    await expect(openGuest({ spec: { rootMode: 'overlay', commands } })).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringMatching(/^commands: cannot be enforced together with root: 'overlay'/) as string,
    })
  })
})

describe('without ids of its own', () => {
  skipGroup(isRoot && 'root can give a cell ids of its own')

  test('a cell has no such root, and says why', async () => {
    await expect(openGuest({ spec: { rootMode: 'overlay' } })).rejects.toMatchObject({
      code: 'unsupported',
      message: "root: 'overlay' is not available: only root can give a cell ids of its own, which own what is in its root",
    })
  })
})
