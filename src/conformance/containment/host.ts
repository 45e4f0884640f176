import type { HostCase, Invariants } from './containment.js'

const threats = ['X-05']

/** What no sandbox may change of the machine around it, whatever was tried in it. */
export const hostCases: readonly HostCase[] = [
  {
    kind: 'files',
    name: 'the files of the system are what they were',
    tries: 'Hashes /etc, /usr/local, /boot, /opt, /srv and cron, and lists the folders of the system.',
    means: 'Something was written to the host: by a program that got out, or by another of your own at the same time.',
    threats: ['X-05', 'F-07'],
  },
  {
    kind: 'settings',
    name: 'the settings of the kernel are what they were',
    tries: 'Reads all of /proc/sys but its counters.',
    means: 'A setting of the kernel was changed: by a program that got out, or by another of your own at the same time.',
    threats: ['X-05', 'F-22'],
  },
  { kind: 'mounts', name: 'nothing is mounted that was not', tries: 'Reads the mount table.', means: 'A sandbox left a mount, or made one.', threats },
  { kind: 'cgroups', name: 'no cgroup is left', tries: 'Lists the groups of this engine.', means: 'A sandbox left a cgroup.', threats },
  { kind: 'processes', name: 'no process is left', tries: 'Lists what descends of this engine.', means: 'A program outlived its sandbox.', threats },
  {
    kind: 'listeners',
    name: 'nobody listens who did not',
    tries: 'Lists the TCP listeners of this engine.',
    means: 'A port of the host was left open.',
    threats,
  },
  {
    kind: 'shared-memory',
    name: "the host has no new segment, queue or semaphore of System V's",
    tries: 'Reads /proc/sysvipc.',
    means: 'A program made one in the namespace of the host.',
    threats: ['X-05', 'P-41'],
  },
  { kind: 'network-namespaces', name: 'no network namespace is left', tries: 'Lists /run/netns.', means: 'A sandbox left one.', threats },
  { kind: 'interfaces', name: 'no network interface is left', tries: 'Lists /sys/class/net.', means: 'A sandbox left one.', threats },
  { kind: 'loop-devices', name: 'no loop device is left', tries: 'Lists loop devices with what is behind them.', means: 'A sandbox left one.', threats },
  {
    kind: 'modules',
    name: 'no module of the kernel was loaded',
    tries: 'Compares /proc/modules.',
    means: 'A program made the kernel load a module, and reaches code that was not there before.',
    threats: ['X-05', 'K-13'],
  },
  { kind: 'taint', name: 'the kernel has not been tainted', tries: 'Reads the taint mask.', means: 'The kernel met a defect of its own meanwhile.', threats },
  {
    kind: 'temporary-files',
    name: 'no record or temporary file is left',
    tries: "Lists the engine's own folders.",
    means: 'A sandbox left files on the host.',
    threats: ['X-05', 'P-37'],
  },
  {
    kind: 'canaries',
    name: 'what was planted on the host is untouched, and nobody connected to it',
    tries: 'Looks at the planted file, and counts connections to the planted listeners.',
    means: 'A program reached the host.',
    threats: ['X-05', 'F-02', 'N-04'],
  },
].map((each) => ({ ...each, id: `host/${each.kind}`, group: 'host' }) as HostCase)

/** What is there now and was not, and the other way round. */
export function changesIn(kind: keyof Invariants, before: Invariants, after: Invariants): string[] {
  const [was, is] = [new Set(before[kind]), new Set(after[kind])]
  return [
    ...after[kind].filter((line) => !was.has(line)).map((line) => `new: ${line}`),
    ...before[kind].filter((line) => !is.has(line)).map((line) => `gone: ${line}`),
  ]
}
