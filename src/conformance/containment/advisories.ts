import { literal } from '../attack.js'
import { type Assault, assaultCases, denied, kept } from './assault.js'

/*
 * What has gone wrong in others' sandboxes, tried here as a class: not the very defect, whose code is not ours, but the step without which it would have led nowhere.
 * Each says where it is from.
 */

const assaults: readonly Assault[] = [
  {
    // runc, CVE-2019-5736: /proc/self/exe of the runtime, while it was entering a container, could be opened by the guest and written to afterwards.
    id: 'runtime-overwrite',
    threats: 'A-01',
    name: 'the program that started the cell cannot be opened for writing through /proc',
    does: 'Opens /proc/*/exe of the first process, of its parent and of itself for writing.',
    means: 'The runtime on the host can be replaced by a program of the guest, and is executed as root by the next sandbox.',
    errors: [...kept, 'ETXTBSY', 'ELOOP'],
    tries: {
      'the first process': "first(lambda: write_open('/proc/1/exe'))",
      'its parent': "first(lambda: write_open('/proc/%d/exe' % (os.getppid() or 1)))",
      itself: "write_open('/proc/self/exe')",
      'by a descriptor that waits': "first(lambda: write_open('/proc/self/fd/%d' % os.open('/proc/1/exe', os.O_PATH)))",
    },
    controls: { 'its own name': "os.readlink('/proc/self/exe')" },
  },
  {
    // runc, CVE-2024-21626: a descriptor of a host folder was left open, and a working folder below /proc/self/fd led to it.
    id: 'leaked-folder',
    threats: 'A-02 F-20 F-21',
    name: 'no descriptor leads to a folder, and the working folder is one of the cell',
    does: 'Walks up from every descriptor that it has, from its working folder and from those of the first process.',
    means: 'A folder of the host is in reach by a descriptor, and everything above it.',
    tries: {
      descriptors:
        "found([d for d in os.listdir('/proc/self/fd') if os.path.isdir('/proc/self/fd/' + d) and os.readlink('/proc/self/fd/' + d) != '/proc/%d/fd' % os.getpid()])",
      'the working folder': "found('unreachable' in os.getcwd() or not os.path.samefile(os.getcwd(), '.'))",
      'above its root': "found(not os.path.samestat(os.stat('/'), os.stat('/..')))",
      'by /proc/self/cwd': "found(not os.path.samestat(os.stat('/'), os.stat('/proc/self/cwd/' + '../' * 40)))",
      'of the first process': "first(lambda: found([d for d in range(64) if os.path.isdir('/proc/1/fd/%d' % d)]))",
    },
    controls: { 'its own': "found(len(os.listdir('/proc/self/fd')) >= 3)" },
  },
  {
    // runc, CVE-2025-31133: /dev/null was bound over masked paths; a guest that replaced it by a link had the link's target bound instead.
    id: 'masks-by-null',
    threats: 'A-03 F-23',
    name: 'the masks are what they should be, and /dev/null is the device',
    does: 'Looks whether /dev/null and what is masked with it are character devices 1:3 or empty, and replaces /dev/null.',
    means: 'A guest can choose what a masked path shows, such as a setting of the kernel that it may then write to.',
    tries: {
      'another null': "found(os.stat('/dev/null').st_rdev != os.makedev(1, 3))",
      'a mask that shows something':
        "found([p for p in ('/proc/kcore', '/proc/keys', '/proc/sysrq-trigger', '/proc/timer_list') if os.path.isfile(p) and quietly(p)[:1]])",
      'replacing it': "[os.rename('/dev/null', '/dev/null')]",
      'removing it': "[found(os.access('/dev', os.W_OK) and not os.stat('/dev').st_mode & 0o1000 or (os.getuid() == 0 and os.access('/dev', os.W_OK)))]",
    },
    controls: { null: "put('/dev/null', b'x')" },
    needs: ['shared-kernel'],
  },
  {
    // runc, CVE-2025-52565: /dev/console was bound over a path below /dev/pts that a guest could have replaced by a link.
    id: 'console',
    threats: 'A-04 F-32',
    name: 'there is no console that leads to the host',
    does: 'Opens /dev/console and the terminals below /dev/pts, and looks at what they are.',
    means: 'A bind that was meant for a terminal covers a file of the guest\u2019s choice.',
    tries: {
      '/dev/console': "os.close(os.open('/dev/console', os.O_RDWR | os.O_NOCTTY))",
      'terminals that it did not open': "found([n for n in os.listdir('/dev/pts') if n != 'ptmx'])",
      'a terminal mounted over a file': "found([m[0] for m in mounts() if m[2] == 'devpts' and m[0] not in ('/dev/pts', '/dev/ptmx')])",
    },
    controls: { 'a terminal of its own': '[os.close(end) for end in os.openpty()]' },
  },
  {
    // runc, CVE-2025-52881: writes that the runtime made to /proc/self/attr could be led elsewhere below /proc by a mount or a link.
    id: 'procfs-redirects',
    threats: 'A-05 F-22',
    name: '/proc is the real one, whole, and nothing lies over its files but masks',
    does: 'Looks in the mount table for anything over /proc that is neither proc nor a mask, and for a second proc.',
    means: 'What the runtime writes to /proc can be led to a setting of the kernel.',
    tries: {
      'something else':
        "found([m for m in mounts() if m[0].startswith('/proc/') and m[2] not in ('proc', 'tmpfs', 'devtmpfs', 'overlay', 'ext4', 'xfs', 'btrfs')], [m[:3] for m in mounts() if m[0].startswith('/proc/')])",
      'a second proc': "found([m[0] for m in mounts() if m[2] == 'proc' and not m[0].startswith('/proc')])",
      'a writable mask': "found([m[0] for m in mounts() if m[0].startswith('/proc/') and m[2] != 'proc' and 'rw' in m[1]])",
      'the label of the next program': "put('/proc/self/attr/exec', b'unconfined')",
    },
    controls: { 'it is proc': "found([m for m in mounts() if m[0] == '/proc' and m[2] == 'proc'])" },
    needs: ['shared-kernel'],
  },
  {
    // bubblewrap, CVE-2017-5226: TIOCSTI on the terminal that the sandbox was started from typed into the shell outside. Later filters missed the bits above the 32nd.
    id: 'terminal-injection',
    threats: 'A-06 K-20',
    name: 'a program has no controlling terminal of the host, and can type into none',
    does: 'Opens /dev/tty, and pushes characters by TIOCSTI with and without bits above the 32nd.',
    means: 'A program can type commands into the shell that started it.',
    errors: [...denied, 'ENXIO', 'EIO', 'ENOTTY', 'ENOENT'],
    tries: {
      '/dev/tty': "os.close(os.open('/dev/tty', os.O_RDWR))",
      stdin: "call('ioctl', 0, 0x5412, b'x')",
      'stdin with high bits': "call('ioctl', 0, 0x7fffffff00005412, b'x')",
      'as a console': "call('ioctl', 0, 0x541d, 0)",
    },
    controls: { 'a terminal of its own': '[os.close(end) for end in os.openpty()]' },
    needs: ['filters-syscalls'],
  },
  {
    // crun, CVE-2022-27650, and podman and moby beside it: containers began with inheritable capabilities, which a file with the same gained from.
    id: 'inheritable-capabilities',
    threats: 'A-07 K-22',
    name: 'the inheritable and ambient sets are empty, also after a program is executed',
    does: 'Reads both sets, and those of a program that it executes.',
    means: 'Executing a file gives capabilities that were meant to be gone.',
    tries: {
      inheritable: "found(int(status()['CapInh'], 16), status()['CapInh'])",
      ambient: "found(int(status().get('CapAmb', '0'), 16))",
      executed:
        "found([l for l in __import__('subprocess').run(['/bin/cat', '/proc/self/status'], capture_output=True).stdout.decode().splitlines() if l.startswith(('CapInh', 'CapAmb')) and int(l.split()[1], 16) or l.startswith('CapEff') and int(l.split()[1], 16) & ~0x41b])",
    },
    controls: { 'its status': "found('CapInh' in status())" },
  },
  {
    // Linux, CVE-2022-0492: release_agent of a cgroup v1 could be written by whoever was root in a user namespace; the kernel executed it as root.
    id: 'release-agent',
    threats: 'A-08 F-28',
    name: 'no cgroup can be mounted, and no release_agent written to',
    does: 'Mounts a cgroup in namespaces of its own, and seeks release_agent and notify_on_release.',
    means: 'The kernel of the host executes a program of the guest as root.',
    errors: [...kept, 'EBUSY', 'EINVAL'],
    tries: {
      mount: "mounted(b'cgroup')",
      'in a user namespace': "forked(lambda: (call('unshare', 0x12020000), call('mount', b'none', b'/tmp', b'cgroup', 0, b'rdma')))",
      release_agent: "found([p for p, _, names in os.walk('/sys/fs/cgroup') if 'release_agent' in names and os.access(p + '/release_agent', os.W_OK)])",
      notify_on_release:
        "found([p for p, _, names in os.walk('/sys/fs/cgroup') if 'notify_on_release' in names and os.access(p + '/notify_on_release', os.W_OK)][:2])",
    },
    controls: { 'a folder': "os.mkdir('folder')" },
    needs: ['filters-syscalls'],
  },
  {
    // Linux, CVE-2023-0386 and CVE-2021-3493: overlays that a guest mounted itself copied up set-user-id files, or capabilities, of another mount.
    id: 'own-overlay',
    threats: 'A-09 K-02',
    name: 'no overlay or fuse file system can be mounted by a guest',
    does: 'Mounts an overlay and fuse in a user namespace of its own, and opens /dev/fuse.',
    means: 'A file with the rights of root can be copied out of a mount that would have taken them away.',
    errors: [...kept, 'EINVAL', 'ENODEV', 'EUSERS', 'ENOSPC'],
    tries: {
      overlay: "forked(lambda: (call('unshare', 0x10020000), call('mount', b'none', b'/tmp', b'overlay', 0, b'lowerdir=/usr:/etc')))",
      'overlay as it is': "mounted(b'overlay')",
      fuse: "os.close(os.open('/dev/fuse', os.O_RDWR))",
    },
    controls: { 'a folder': "os.mkdir('folder')" },
    needs: ['filters-syscalls'],
  },
  {
    // gVisor and others: descriptors of the host, and its paths, were to be seen by those who looked at /proc.
    id: 'host-paths-in-proc',
    threats: 'A-10 F-41',
    name: "/proc shows no path of the host's and no descriptor of whoever built the cell",
    does: 'Looks for the planted folder, and for the folders of the engine, in every file of /proc that it may read.',
    means: 'Paths of the host are told, and may be opened by the next defect.',
    tries: ({ canaries }) => ({
      'the folder that was planted': `found([f for f in ('mountinfo', 'maps', 'environ', 'cmdline', 'cgroup', 'mountstats') if ${literal(canaries.file.path.split('/').at(-2) ?? '')}.encode() in quietly('/proc/1/' + f) + (quietly('/proc/self/' + f) if f != 'cmdline' else b'')])`,
      'descriptors of others':
        "found([p for p in pids() if int(p) != os.getpid() and at_home and os.access('/proc/%s/fd/0' % p, os.R_OK)]) if at_home else found(True)",
    }),
    controls: { 'its own': "found(read('/proc/self/mountinfo'))" },
    places: ['root', 'liner'],
    needs: ['shared-kernel'],
  },
  {
    // Judge0, CVE-2024-28185 and 28189: the service wrote, and changed owners, through links that a guest had left in its working folder.
    id: 'links-for-the-service',
    threats: 'A-11 F-14',
    name: 'links that are left where the engine works lead nowhere',
    does: "Puts links to the host's files in place of each of its own folders, as far as it may, and looks whether they are followed.",
    means: 'The engine follows links of a guest with rights that the guest has not.',
    errors: [...kept, 'EBUSY', 'ENOTEMPTY', 'EEXIST', 'EISDIR'],
    tries: {
      'in place of home':
        "[os.rename(os.environ['HOME'], os.environ['HOME'] + '-gbx'), os.symlink('/', os.environ['HOME'])] if at_home else 'not tried: it is the home of the host'",
      'in place of the workspace': "[os.rename('/workspace', '/workspace-gbx'), os.symlink('/', '/workspace')] if at_home else 'not tried'",
      'in place of /tmp': "[os.rename('/tmp', '/tmp-gbx'), os.symlink('/', '/tmp')] if at_home else 'not tried'",
    },
    controls: { 'a link of its own': "[os.symlink('/', 'link'), os.unlink('link')]" },
  },
  {
    // Sandboxes of agents: what is written to the workspace is executed later by tools outside. Here it is only ever the cell's own.
    id: 'one-workspace',
    threats: 'A-12 F-38',
    name: 'the workspace is a folder of the cell, and of no host',
    does: 'Looks at what the workspace is mounted from.',
    means: 'Whatever a program leaves there is met by tools on the host.',
    tries: {
      'a disk of the host': "found([m for m in mounts() if m[0] == '/workspace' and m[2] not in ('tmpfs', 'overlay')]) if at_home else found(True)",
    },
    controls: { 'it can be written to': "open('own', 'w').close()" },
    needs: ['shared-kernel'],
  },
]

export const advisoryContainment = assaultCases('advisories', assaults)
