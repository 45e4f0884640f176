import type { Attack } from '../attack.js'
import { attackCase, literal } from '../attack.js'
import { ensureSame } from '../check.js'
import { randomName } from '../guest.js'
import type { Case, HostView } from '../subject.js'

async function ensureCanaryUntouched(host: HostView): Promise<void> {
  ensureSame(await host.canaries.file.isUntouched(), true, 'that the canary file is as it was')
}

const outside = [
  '/',
  '/etc',
  '/usr',
  '/usr/bin',
  '/usr/local',
  '/opt',
  '/var',
  '/var/lib',
  '/boot',
  '/home',
  '/srv',
  '/mnt',
  '/dev',
  '/sys',
  '/run',
  '/lib',
  '/proc',
]

const sockets = [
  '/var/run/docker.sock',
  '/run/docker.sock',
  '/run/containerd/containerd.sock',
  '/run/crio/crio.sock',
  '/run/podman/podman.sock',
  '/run/systemd/private',
  '/run/dbus/system_bus_socket',
]

const kernelFiles = [
  '/proc/sys/kernel/core_pattern',
  '/proc/sys/kernel/modprobe',
  '/proc/sys/vm/overcommit_memory',
  '/proc/sys/kernel/hostname',
  '/proc/sysrq-trigger',
  '/proc/irq/default_smp_affinity',
]

const secrets = [
  '/proc/kcore',
  '/proc/keys',
  '/proc/timer_list',
  '/proc/sched_debug',
  '/proc/scsi/scsi',
  '/sys/firmware',
  '/sys/kernel/security',
  '/sys/devices/virtual/powercap',
  '/proc/acpi',
  '/proc/bus',
  '/proc/cmdline',
  '/proc/config.gz',
  '/proc/diskstats',
  '/proc/iomem',
  '/proc/ioports',
  '/proc/kpagecgroup',
  '/proc/kpagecount',
  '/proc/kpageflags',
  '/proc/modules',
  '/proc/slabinfo',
  '/proc/vmallocinfo',
]

/** What programs ask for to find out how much there is to work with. */
const publicFiles = ['/proc/cpuinfo', '/proc/loadavg', '/proc/meminfo', '/proc/stat', '/proc/uptime']

const hostAttacks: readonly Attack[] = [
  {
    id: 'host-canary-file',
    name: 'a file of the host is neither read, found nor reached by any other way to its path',
    tries: ({ canaries }) => ({
      read: `read(${literal(canaries.file.path)})`,
      stat: `os.stat(${literal(canaries.file.path)}).st_size`,
      folder: `os.listdir(os.path.dirname(${literal(canaries.file.path)}))`,
      'by /proc/self/root': `read('/proc/self/root' + ${literal(canaries.file.path)})`,
      'by /proc/self/cwd': `read('/proc/self/cwd' + '/..' * 20 + ${literal(canaries.file.path)})`,
      'by dots': `read('../' * 20 + ${literal(canaries.file.path)}.lstrip('/'))`,
      'by descriptor': `read('/proc/self/fd/${canaries.descriptor}')`,
    }),
    controls: { 'a file of its own': "[open('own', 'w').write('x'), read('/proc/self/cwd/own')]" },
    afterwards: ensureCanaryUntouched,
  },
  {
    id: 'host-homes',
    name: "the homes of the host's users are not there",
    tries: ({ canaries }) => ({
      '/root': "found(os.listdir('/root'))",
      '/home': "found([n for n in os.listdir('/home') if n != 'user'] or not os.path.isdir('/home/user'))",
      'the canary by name': `found(any(${literal(canaries.file.path.split('/').at(-2) ?? '')} in d for _, d, _ in os.walk('/tmp')))`,
    }),
    controls: { 'its own home': "os.listdir(os.environ['HOME'])" },
  },
  {
    id: 'host-shadow',
    name: "the host's password hashes cannot be read",
    tries: {
      '/etc/shadow': "read('/etc/shadow')",
      '/etc/gshadow': "read('/etc/gshadow')",
      '/etc/sudoers': "read('/etc/sudoers')",
      'ssh keys': "os.listdir('/etc/ssh')",
      'machine id': "found(read('/etc/machine-id').strip())",
    },
    controls: { '/etc/passwd': "read('/etc/passwd')" },
  },
  {
    id: 'control-sockets',
    name: 'no socket that controls the host can be connected to',
    tries: Object.fromEntries(sockets.map((path) => [path, `connect(socket.AF_UNIX, ${literal(path)})`])),
    controls: { 'a socket of its own': "serve(socket.AF_UNIX, 'own.sock')" },
  },
  {
    id: 'writes-outside',
    name: 'nothing can be written outside the workspace, the temporary folders and home',
    errors: ['EROFS', 'EACCES', 'EPERM', 'ENOENT'],
    tries: Object.fromEntries(outside.map((folder) => [folder, `create(${literal(`${folder === '/' ? '' : folder}/${randomName()}`)})`])),
    controls: Object.fromEntries(['/tmp', '/var/tmp', '/dev/shm', '.'].map((folder) => [folder, `create(${literal(`${folder}/${randomName()}`)})`])),
  },
  {
    id: 'system-files',
    name: 'system files cannot be changed, replaced or given other rights',
    errors: ['EROFS', 'EACCES', 'EPERM', 'ENOENT'],
    tries: {
      'open /etc/passwd': "write_open('/etc/passwd')",
      'open /usr/bin/env': "write_open('/usr/bin/env')",
      'chmod /usr/bin/env': "os.chmod('/usr/bin/env', os.stat('/usr/bin/env').st_mode & 0o7777)",
      'touch /etc/passwd': "os.utime('/etc/passwd', ns=(lambda s: (s.st_atime_ns, s.st_mtime_ns))(os.stat('/etc/passwd')))",
      'chmod /': "os.chmod('/', os.stat('/').st_mode & 0o7777)",
    },
    controls: { 'a file of its own': "[open('own', 'w').close(), os.chmod('own', 0o700), write_open('own')]" },
  },
  {
    id: 'kernel-settings',
    name: 'settings of the kernel cannot be opened for writing',
    tries: Object.fromEntries(kernelFiles.map((path) => [path, `write_open(${literal(path)})`])),
    controls: { 'a device that it has open, by /proc': "write_open('/proc/self/fd/%d' % os.open('/dev/null', os.O_RDONLY))" },
  },
  {
    id: 'kernel-secrets',
    name: 'what the kernel tells of the host is masked',
    tries: Object.fromEntries(
      secrets.map((path) => [path, `found(os.listdir(${literal(path)}) if os.path.isdir(${literal(path)}) else read(${literal(path)}, 8))`]),
    ),
    controls: Object.fromEntries(publicFiles.map((path) => [path, `found(read(${literal(path)}))`])),
  },
  {
    id: 'devices',
    name: '/dev holds the few harmless devices and no other',
    tries: {
      'something else':
        "found(set(os.listdir('/dev')) - set('null zero full random urandom tty ptmx pts shm fd stdin stdout stderr'.split()), sorted(os.listdir('/dev')))",
      '/dev/kmsg': "os.open('/dev/kmsg', os.O_RDONLY)",
      '/dev/mem': "os.open('/dev/mem', os.O_RDONLY)",
      "the host's terminals": "found([n for n in os.listdir('/dev/pts') if n != 'ptmx'])",
      mknod: "[os.mknod('node', 0o20600, os.makedev(1, 3)), write_open('node'), os.unlink('node')]",
    },
    controls: {
      null: "open('/dev/null', 'wb').write(b'x')",
      zero: "read('/dev/zero', 4)",
      full: "os.stat('/dev/full').st_rdev",
      urandom: "read('/dev/urandom', 4)",
      'a terminal': '[os.close(end) for end in os.openpty()]',
    },
  },
  {
    id: 'device-times',
    name: "the times of devices and of what is masked by one cannot be changed: they may be the host's",
    needs: ['shared-kernel'],
    errors: ['EROFS'],
    tries: Object.fromEntries(['/dev/null', '/dev/zero', '/dev/full', '/dev/tty', '/proc/keys'].map((path) => [path, `os.utime(${literal(path)})`])),
    controls: { 'writing to one': "put('/dev/null', b'x')", 'the times of a file': "[open('own', 'w').close(), os.utime('own')]" },
  },
  {
    id: 'many-terminals',
    name: 'a cell cannot take all the terminals of the machine',
    needs: ['shared-kernel'],
    errors: ['ENOSPC'],
    tries: { 'two hundred': '[os.openpty() for _ in range(200)]' },
    controls: { 'one after the other': '[[os.close(end) for end in os.openpty()] for _ in range(200)]', 'twenty at once': '[os.openpty() for _ in range(20)]' },
  },
]

export const fileIsolationCases: readonly Case[] = hostAttacks.map(attackCase)
