import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plant } from './planted-drivers.js'

/** A mistake, the control that names it, and when it must be noticed at the latest. */
export interface Planted extends Plant {
  readonly mistake: string
  readonly control: string
  readonly noticed: 'create' | 'run'
  /** What the mistake cannot be made without, or cannot be seen. */
  readonly needs?: 'root' | 'cgroups'
}

const apart = ['--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup']

/** Everything but one of the namespaces. */
function sharing(name: string): Readonly<Record<string, readonly string[]>> {
  return { '--unshare-all': apart.filter((option) => option !== `--unshare-${name}`) }
}

/** The first of these files that a group has. */
function write(folders: readonly string[], values: Readonly<Record<string, string>>): void {
  const files = folders.flatMap((folder) => Object.entries(values).map(([name, value]) => ({ path: join(folder, name), value })))
  for (const { path, value } of files) if (existsSync(path)) writeFileSync(path, value)
}

const allowEverything = Uint8Array.from([0x06, 0, 0, 0, 0, 0, 0xff, 0x7f])
const unlimited = 2n ** 64n - 1n

export const plantedMistakes: readonly Planted[] = [
  { mistake: 'the host’s network', control: 'namespaces', noticed: 'create', words: sharing('net') },
  { mistake: 'the host’s shared memory and message queues', control: 'namespaces', noticed: 'create', words: sharing('ipc') },
  { mistake: 'the host’s name', control: 'namespaces', noticed: 'create', words: { ...sharing('uts'), '--hostname': [], glovebox: [] } },
  { mistake: 'the host’s view of cgroups', control: 'namespaces', noticed: 'create', words: sharing('cgroup') },
  {
    mistake: 'ways for which nobody asked',
    control: 'routes',
    noticed: 'create',
    words: { ALL: ['ALL', '--cap-add', 'CAP_NET_ADMIN', '--cap-add', 'CAP_NET_BIND_SERVICE'], '--pts': ['--pts', '--egress', '3128', '--direct'] },
  },
  { mistake: 'a door for which nobody asked', control: 'sockets', noticed: 'create', words: { '--pts': ['--pts', '--egress', '3128'] } },
  { mistake: 'a smaller id map', control: 'uid-map', noticed: 'create', needs: 'root', words: { '65536': ['65535'] } },
  { mistake: 'a writable root', control: 'mounts', noticed: 'create', words: { '/': ['/nowhere'] } },
  {
    mistake: 'a folder of the host’s that can be written to',
    control: 'mounts',
    noticed: 'create',
    words: { '--proc': ['--bind', '/usr/share', '/srv', '--proc'] },
  },
  {
    mistake: 'a folder of the host’s that nobody asked for',
    control: 'mounts',
    noticed: 'create',
    words: { '--proc': ['--ro-bind', '/usr/share', '/srv', '--proc'] },
  },
  { mistake: 'memory as a disk beside the disk', control: 'mounts', noticed: 'create', words: { '--proc': ['--tmpfs', '/opt', '--proc'] } },
  { mistake: 'an unmasked path', control: 'mounts', noticed: 'create', words: { '/proc/kallsyms': ['/proc/nowhere'] } },
  { mistake: 'a writable /proc/sys', control: 'mounts', noticed: 'create', words: { '/proc/sys': ['/proc/nowhere'] } },
  { mistake: 'a larger disk', control: 'limit.disk', noticed: 'create', words: { '52428800': ['524288000'] } },
  { mistake: 'a disk with more files', control: 'limit.inodes', noticed: 'create', words: { '4321': ['43210'] } },
  {
    mistake: 'no limit on processes',
    control: 'limit.processes',
    noticed: 'create',
    needs: 'cgroups',
    groups: (folders) => write(folders, { 'pids.max': 'max' }),
  },
  {
    mistake: 'another limit on memory',
    control: 'limit.memory',
    noticed: 'create',
    needs: 'cgroups',
    groups: (folders) => write(folders, { 'memory.memsw.limit_in_bytes': '600m', 'memory.limit_in_bytes': '600m', 'memory.max': '600m' }),
  },
  {
    mistake: 'a lifted processor quota',
    control: 'limit.cpus',
    noticed: 'create',
    needs: 'cgroups',
    groups: (folders) => write(folders, { 'cpu.cfs_quota_us': '-1', 'cpu.max': 'max' }),
  },
  {
    mistake: 'a capability too many for the warden',
    control: 'warden',
    noticed: 'create',
    words: { CAP_SYS_ADMIN: ['CAP_SYS_ADMIN', '--cap-add', 'CAP_SETFCAP'] },
  },
  {
    mistake: 'a warden that can still mount',
    control: 'warden',
    noticed: 'create',
    warden: { file: 'main.c', passage: 'static const uint64_t KEPT = ', instead: 'static const uint64_t KEPT = CAPS_BIT(CAP_SYS_ADMIN) | ' },
  },
  {
    mistake: 'a warden without a filter of its own',
    control: 'warden',
    noticed: 'create',
    warden: { file: 'main.c', passage: 'if (self_filter_load(', instead: 'if (permitted == 0 && self_filter_load(' },
  },
  { mistake: 'no filter', control: 'seccomp', noticed: 'run', filter: new Uint8Array() },
  { mistake: 'a filter that allows everything', control: 'filter', noticed: 'run', needs: 'root', filter: allowEverything },
  { mistake: 'root instead of user', control: 'ids', noticed: 'run', needs: 'root', start: (payload) => ({ ...payload, uid: 0, gid: 0 }) },
  { mistake: 'another group', control: 'ids', noticed: 'run', needs: 'root', start: (payload) => ({ ...payload, gid: 0 }) },
  // The only one that a warden has whose cell has a single id.
  { mistake: 'a capability too many', control: 'capabilities', noticed: 'run', start: (payload) => ({ ...payload, capabilities: 1n << 8n }) },
  {
    mistake: 'a bounding set that was not dropped',
    control: 'capabilities',
    noticed: 'run',
    warden: { file: 'program-gate.c', passage: '  bound_capabilities(child);\n', instead: '  (void)bound_capabilities;\n' },
  },
  {
    mistake: 'core dumps',
    control: 'rlimits',
    noticed: 'run',
    start: (payload) => ({
      ...payload,
      rlimits: payload.rlimits.map((limit) => (limit.resource === 4 ? { resource: 4, soft: unlimited, hard: unlimited } : limit)),
    }),
  },
  {
    mistake: 'larger files',
    control: 'rlimits',
    noticed: 'run',
    start: (payload) => ({ ...payload, rlimits: payload.rlimits.filter(({ resource }) => resource !== 1) }),
  },
  {
    mistake: 'a descriptor too many',
    control: 'descriptors',
    noticed: 'run',
    warden: {
      file: 'program-gate.c',
      passage: '  load_filter(child);\n',
      instead: '  if (dup(1) < 0) fail(child, "leak", "a descriptor");\n  load_filter(child);\n',
    },
  },
  {
    mistake: 'a program outside the group of its run',
    control: 'placement',
    noticed: 'run',
    needs: 'cgroups',
    warden: { file: 'program-gate.c', passage: '  join_groups(child);\n', instead: '  (void)join_groups;\n' },
  },
]
