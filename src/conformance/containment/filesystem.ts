import { literal } from '../attack.js'
import { type Assault, assaultCases, denied, kept } from './assault.js'

const secretPlaces = [
  '/var/log',
  '/var/lib/docker',
  '/var/lib/containerd',
  '/var/lib/kubelet',
  '/run/secrets',
  '/var/run/secrets',
  '/etc/kubernetes',
  '/var/spool/cron',
  '/etc/letsencrypt',
  '/root/.ssh',
  '/root/.aws',
  '/boot',
]

const ownPlaces = ['/run/glovebox', '/var/lib/glovebox', '/var/lib/glovebox-run', '/var/cache/glovebox', '/root/.cache/glovebox', '/root/.local/share/glovebox']

const aliases = ['/proc/self/root/proc', '/proc/thread-self/root/proc', '/proc/self/task/../../..', '/proc/./', '/../proc']

const riskyTypes = [
  'debugfs',
  'tracefs',
  'securityfs',
  'bpf',
  'efivarfs',
  'configfs',
  'pstore',
  'fusectl',
  'binfmt_misc',
  'hugetlbfs',
  'cgroup',
  'cgroup2',
  'devtmpfs',
  'nsfs',
]

const assaults: readonly Assault[] = [
  {
    id: 'host-data',
    threats: 'F-03',
    name: "logs, spools, secrets and other programs' data of the host are not there",
    does: 'Lists /var/log, the folders of container engines, kubelet, cron, ssh and cloud credentials.',
    means: "Data of the host's services can be read.",
    tries: Object.fromEntries(secretPlaces.map((path) => [path, `found(os.listdir(${literal(path)}), os.listdir(${literal(path)})[:3])`])),
    controls: { 'its own folder': "os.listdir('.')" },
  },
  {
    id: 'engine-data',
    threats: 'F-06',
    name: "records, keys and caches of the engine's are not there",
    does: "Looks for the engine's own folders, and for the temporary folder that it works in.",
    means: 'A program can read or change what the engine goes by.',
    tries: ({ canaries }) => ({
      ...Object.fromEntries(ownPlaces.map((path) => [path, `found(os.listdir(${literal(path)}))`])),
      'the folder of what was planted': `os.listdir(${literal(canaries.file.path.slice(0, canaries.file.path.lastIndexOf('/')))})`,
    }),
    controls: { 'its own folder': "os.listdir('.')" },
  },
  {
    id: 'hard-links',
    threats: 'F-09',
    name: 'no file of the system can be linked into the workspace',
    does: 'Makes hard links to system files and to programs.',
    means: 'A file keeps living, and being writable, under a name of the guest.',
    errors: kept,
    tries: {
      '/etc/passwd': "os.link('/etc/passwd', 'link')",
      '/usr/bin/env': "os.link('/usr/bin/env', 'link2')",
      'by descriptor': "os.link('/proc/self/fd/%d' % os.open('/etc/passwd', os.O_RDONLY), 'link3', follow_symlinks=True)",
    },
    controls: { 'a file of its own': "[open('own', 'w').close(), os.link('own', 'other')]" },
  },
  {
    id: 'reopened-descriptors',
    threats: 'F-12',
    name: 'a descriptor for reading cannot be opened again for writing',
    does: 'Opens system files by O_PATH or for reading, and again by /proc/self/fd for writing.',
    means: 'What is read-only can be written to by another name.',
    errors: kept,
    tries: {
      O_PATH: "write_open('/proc/self/fd/%d' % os.open('/etc/passwd', os.O_PATH))",
      reading: "write_open('/proc/self/fd/%d' % os.open('/usr/bin/env', os.O_RDONLY))",
      truncation: "os.truncate('/proc/self/fd/%d' % os.open('/etc/passwd', os.O_RDONLY), os.stat('/etc/passwd').st_size)",
    },
    controls: { 'a file of its own': "[open('own', 'w').close(), write_open('/proc/self/fd/%d' % os.open('own', os.O_PATH))]" },
  },
  {
    id: 'renames',
    threats: 'F-15',
    name: 'folders of the system cannot be moved',
    does: 'Renames /etc, /usr/bin and a program in it.',
    means: 'A guest can put its own files where others look for those of the system.',
    errors: [...kept, 'EBUSY', 'EINVAL'],
    // To their own names, so that nothing happens where nothing forbids it. A kernel of its own may take that for nothing to do: there it is done, and undone.
    defines: `def moved(path):
    os.rename(path, path)
    if at_home:
        os.rename(path, path + '-gbx')
        os.rename(path + '-gbx', path)`,
    tries: {
      '/etc': "moved('/etc')",
      '/usr/bin': "moved('/usr/bin')",
      '/usr/bin/env': "moved('/usr/bin/env')",
    },
    controls: { 'folders of its own': "[os.mkdir('one'), os.mkdir('two'), os.rename('one', 'two')]" },
  },
  {
    id: 'mount-options',
    threats: 'F-18 F-33',
    name: 'whatever can be written to is mounted without set-user-id and without devices',
    does: 'Reads its mount table, and looks for what is writable and neither nosuid nor nodev.',
    means: 'A program or a device that a guest leaves there works with the rights of its owner.',
    tries: {
      suid: "found([m[0] for m in mounts() if 'rw' in m[1] and 'nosuid' not in m[1]], [m[0] for m in mounts() if 'rw' in m[1] and 'nosuid' not in m[1]])",
      devices:
        "found([m[0] for m in mounts() if 'rw' in m[1] and 'nodev' not in m[1] and m[2] != 'devpts' and not m[0].startswith('/dev/')], [m[0] for m in mounts() if 'rw' in m[1] and 'nodev' not in m[1]])",
    },
    controls: { 'the table': 'found(mounts())' },
    needs: ['shared-kernel'],
  },
  {
    id: 'proc-sys',
    threats: 'F-22 F-24',
    name: 'no setting below /proc/sys can be written to',
    does: 'Walks /proc/sys, and asks of each file whether it may be written to.',
    means: 'A program can change settings of the kernel.',
    tries: {
      'a file': "found([os.path.join(p, n) for p, _, names in os.walk('/proc/sys') for n in names if os.access(os.path.join(p, n), os.W_OK)][:5], 'writable')",
    },
    controls: { 'it is there': "found(os.listdir('/proc/sys'))" },
  },
  {
    id: 'sys',
    threats: 'F-25 F-30',
    name: 'nothing below /sys can be written to',
    does: 'Walks /sys, and asks of each file whether it may be written to.',
    means: 'A program can change devices and groups of the host.',
    tries: {
      'a file':
        "found([os.path.join(p, n) for i, (p, _, names) in enumerate(os.walk('/sys')) if i < 4000 for n in names[:60] if os.access(os.path.join(p, n), os.W_OK)][:5], 'writable')",
    },
    controls: { 'access is asked for': "found(os.access('.', os.W_OK))" },
  },
  {
    id: 'new-mount-calls',
    threats: 'F-26 K-14',
    name: 'the newer calls that mount are refused as the old ones are',
    does: 'Calls fspick, fsmount, move_mount, mount_setattr and pivot_root.',
    means: 'What is masked or read-only can be uncovered by a call that a filter forgot.',
    errors: denied,
    tries: {
      fspick: "os.close(call('fspick', -100, b'/', 0))",
      fsmount: "os.close(call('fsmount', -1, 0, 0))",
      move_mount: "call('move_mount', -1, b'', -1, b'', 0x44)",
      mount_setattr: "call('mount_setattr', -1, b'', 0x1000, None, 0)",
      pivot_root: "call('pivot_root', b'/no/such', b'/no/such')",
    },
    controls: { 'a folder': "[os.mkdir('place'), os.rmdir('place')]" },
    needs: ['filters-syscalls'],
  },
  {
    id: 'masks-by-other-names',
    threats: 'F-23 F-27',
    name: 'what is masked is masked by every name that it has',
    does: 'Reads kcore, keys and timer_list by /proc/self/root, by threads and by odd spellings.',
    means: 'A mask covers a name, and not the file.',
    tries: Object.fromEntries(
      aliases.flatMap((way) => ['kcore', 'keys', 'timer_list'].map((name) => [`${way}/${name}`, `found(read(${literal(`${way}/${name}`)}, 8))`])),
    ),
    controls: { 'a file that is not masked': "found(read('/proc/self/root/proc/uptime'))" },
  },
  {
    id: 'risky-file-systems',
    threats: 'F-28 F-30',
    name: 'no file system that controls the kernel is mounted',
    does: 'Looks in its mount table for debugfs, tracefs, bpf, efivarfs, cgroup and the like that can be written to.',
    means: 'A program can reach controls of the kernel through files.',
    tries: Object.fromEntries(
      riskyTypes.map((type) => [
        type,
        `found([m[0] for m in mounts() if m[2] == ${literal(type)} and ('rw' in m[1] or ${literal(type)} not in ('cgroup', 'cgroup2', 'devtmpfs'))])`,
      ]),
    ),
    controls: { 'the table': 'found(mounts())' },
    needs: ['shared-kernel'],
  },
  {
    id: 'extended-attributes',
    threats: 'F-34 K-23',
    name: 'no file can be given capabilities or attributes that the kernel trusts',
    does: 'Sets security.capability, trusted.* and security.* of a file of its own.',
    means: 'A program can leave a file that gains rights when it is executed.',
    errors: [...denied, 'ENOTSUP', 'EOPNOTSUPP', 'EINVAL'],
    tries: {
      'security.capability': "os.setxattr(open('a', 'w').name, 'security.capability', struct.pack('<IIIII', 0x02000001, 1 << 21, 0, 0, 0))",
      'trusted.gbx': "os.setxattr(open('a', 'w').name, 'trusted.gbx', b'x')",
      'security.gbx': "os.setxattr(open('a', 'w').name, 'security.gbx', b'x')",
      'trusted.overlay.opaque': "os.setxattr(open('a', 'w').name, 'trusted.overlay.opaque', b'y')",
    },
    controls: { 'its mode': "[open('a', 'w').close(), os.chmod('a', 0o755)]" },
  },
  {
    id: 'handles',
    threats: 'F-35',
    name: 'no file can be opened by a handle',
    does: 'Asks for the handle of a file and opens handles that it guesses.',
    means: 'Any file of a mounted file system can be opened, wherever it is: the "shocker" way out of containers.',
    errors: [...denied, 'EOPNOTSUPP', 'ENOTSUP'],
    tries: {
      'a guess': "os.close(call('open_by_handle_at', os.open('/', os.O_RDONLY), struct.pack('<IiQ', 8, 1, 2), 0))",
      'of the workspace': "os.close(call('open_by_handle_at', os.open('.', os.O_RDONLY), struct.pack('<IiQ', 8, 0x81, 2), 0))",
    },
    controls: { 'by name': "os.close(os.open('.', os.O_RDONLY))" },
  },
  {
    id: 'device-nodes',
    threats: 'F-36',
    name: 'no device node can be made, of whatever kind',
    does: 'Makes nodes of the memory, a disk, a terminal and fuse.',
    means: "A program can open devices of the host's.",
    errors: denied,
    tries: {
      memory: "os.mknod('mem', 0o20600, os.makedev(1, 1))",
      disk: "os.mknod('disk', 0o60600, os.makedev(254, 0))",
      terminal: "os.mknod('tty', 0o20600, os.makedev(4, 0))",
      fuse: "os.mknod('fuse', 0o20600, os.makedev(10, 229))",
      whiteout: "os.mknod('white', 0o20600, os.makedev(0, 0))",
    },
    controls: { 'a fifo': "os.mkfifo('fifo')" },
  },
  {
    id: 'fanotify',
    threats: 'F-40',
    name: 'fanotify, which watches whole mounts, is refused',
    does: 'Calls fanotify_init as a watcher of content and of names.',
    means: 'A program can see, or hold up, what others open.',
    errors: denied,
    tries: { content: "os.close(call('fanotify_init', 4, 0))", names: "os.close(call('fanotify_init', 0x200 | 0x400, 0))" },
    controls: { inotify: 'os.close(libc.inotify_init())' },
    needs: ['filters-syscalls'],
  },
  {
    id: 'paths-of-the-host',
    threats: 'F-41',
    name: 'paths of the host that the mount table shows lead nowhere',
    does: 'Opens each path of an upper, lower or work folder that its mount table shows.',
    means: 'The layers of a sandbox can be reached past its own view of them.',
    tries: {
      layers:
        "found([p for m in mounts() for o in m[3].split(',') if o.split('=')[0].split(' ')[-1] in ('upperdir', 'lowerdir', 'workdir') for p in o.split('=', 1)[1].split(':') if p.startswith('/') and len(p) > 5 and os.path.isdir(p) and not p.startswith('/usr')])",
    },
    controls: { 'the table': 'found(mounts())' },
    needs: ['shared-kernel'],
  },
  {
    id: 'usable',
    threats: 'F-43',
    name: 'what programs need of files works: write, rename, sync, map, fifos and sockets',
    does: 'Does in the workspace, /tmp and /dev/shm what programs do with files, which must work.',
    means: 'The control beside the denials does not work: nothing can be said of them.',
    defines: `def worked(folder):
    import mmap
    path = folder + '/' + facts['folder'] + '.file'
    with open(path, 'wb+') as f:
        f.write(b'x' * (1 << 20)); f.flush(); os.fsync(f.fileno())
        with mmap.mmap(f.fileno(), 0) as m: m[0:1] = b'y'
    os.rename(path, path + '2'); size = os.stat(path + '2').st_size; os.unlink(path + '2')
    return size`,
    tries: {},
    controls: {
      here: "worked('.')",
      '/tmp': "worked('/tmp')",
      '/dev/shm': "worked('/dev/shm')",
      'a fifo': "os.mkfifo('f')",
      'a socket': "serve(socket.AF_UNIX, 's')",
    },
  },
]

export const filesystemContainment = assaultCases('filesystem', assaults)
