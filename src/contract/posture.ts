/**
 * What holds around a cell or one of its processes, as it was found. An item is called a *control*; the same names stand in expectations,
 * postures and receipts. An expectation that is an object demands the names it has, and lists are compared whole: what nobody demands may differ.
 *
 * | of the cell | value |
 * |---|---|
 * | `namespaces` | `{ cgroup, ipc, mnt, net, pid, user, uts }`, each `'own'` or `'host'` |
 * | `uid-map`, `gid-map` | rows of `[inside, outside, count]` |
 * | `interfaces` | names of the network interfaces |
 * | `routes` | where there is a way to and over which interface, the loopback's own addresses apart |
 * | `sockets` | how many there are in its network, `{ tcp, tcp6, udp, udp6, other }`, before anything of a guest's has run: those at which the way out listens, and no others |
 * | `mounts` | rows of `{ target, type, access: 'ro' \| 'rw', nosuid, nodev, noexec }`, sorted by target: those that can be reached, not what lies under another |
 * | `limit.<name>` | the number the kernel states for a limit, under the limit's name; `null` where it states none |
 * | `warden` | `{ capabilities, noNewPrivs, seccomp, filters, cgroup }` of the first process; capabilities as of a program, cgroup `'cell'`, `'none'` where the cell has none, or a text that says where it is |
 * | `kernel` | of a cell with a kernel of its own: `{ isGvisor, version }`, as its log and its /proc/version say inside |
 * | `sentry`, `gofer` | of a sandbox of gVisor: `{ uids, gids, groups, capabilities, noNewPrivs, seccomp, cgroup }` of its kernel and of who opens files for it, as the host sees them |
 *
 * | of everything | value |
 * |---|---|
 * | `complete` | boolean, of `cell`, beside the postures of its processes and threads: whether these are all |
 *
 * | of a program | value |
 * |---|---|
 * | `ids` | `{ uid, gid, groups }`, as the cell sees them: all four of each kind are equal, or the value is a text that says otherwise |
 * | `capabilities` | `{ effective, permitted, inheritable, bounding, ambient }` as hexadecimal text without leading zeros |
 * | `no-new-privs` | boolean |
 * | `seccomp` | `{ mode, filters }`: 2 is a filter; how many are stacked beyond those that whoever reads this is under itself, as in a container |
 * | `filter` | SHA-256 of the newest filter's instructions, hexadecimal |
 * | `placement` | `{ namespaces: 'cell', cgroup: 'run' }` when it is where it should be (`'none'` where the cell has no cgroup), otherwise texts that say where |
 * | `rlimits` | `{ addressSpace, core, cpu, data, fileSize, files, lockedMemory, processes, stack, … }`: rows of `[soft, hard]`, `'unlimited'` or numbers, cpu in seconds |
 * | `descriptors` | numbers of those that survive execve |
 */
export type Evidence = 'kernel' | 'runtime' | 'probe' | 'asserted'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

export interface Observation {
  readonly control: string
  readonly value: Json
  /** `kernel`: read from it; `probe`: tried from inside; `runtime`: told by what built the cell; `asserted`: nobody could be asked. Only the first two prove anything. */
  readonly evidence: Evidence
  /** Where it was read, or why it could not be. */
  readonly source: string
}

export interface Expectation {
  readonly control: string
  readonly value: Json
}

export interface Posture {
  /** `cell`, or `pid 7`, or `pid 7 thread 9`: numbers as the cell sees them. */
  readonly subject: string
  readonly observations: readonly Observation[]
}
