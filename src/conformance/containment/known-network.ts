import type { KnownCase } from './known.js'

export const knownNetwork: readonly KnownCase[] = [
  {
    id: 'isolation/network-off-reach',
    threats: 'N-01 N-02 N-07 N-08',
    tries: 'Without a network, aims at public, private and metadata addresses by TCP, UDP, ICMP, SCTP, IPv6 and broadcast.',
    means: 'There is a way out that nobody decided about.',
  },
  {
    id: 'isolation/no-network',
    threats: 'N-01 N-19 K-19',
    tries: 'Looks for interfaces and routes, and opens packet and raw sockets.',
    means: 'There is a way out that nobody decided about.',
  },
  {
    id: 'isolation/host-loopback',
    threats: 'N-04',
    tries: "Connects to listeners on the host's loopback, by IPv4, IPv6 and 0.0.0.0.",
    means: 'Services that trust their own machine can be reached.',
  },
  {
    id: 'isolation/host-abstract-socket',
    threats: 'N-06',
    tries: 'Connects to an abstract socket of the host.',
    means: 'Sockets without a file can be reached: X11, dbus, container shims.',
  },
  {
    id: 'isolation/network-off-doors',
    threats: 'N-31 N-43',
    tries: 'Looks for anybody who listens in a cell without a network.',
    means: 'A door to the way out is there although none was asked for.',
  },
  {
    id: 'isolation/network-settings',
    threats: 'N-37',
    tries: 'Sets flags and sizes of interfaces, forwarding and who may ping.',
    means: 'Programs can change the network that they are in.',
  },
  {
    id: 'isolation/network-inbound',
    threats: 'N-35 M-17',
    tries: 'Listens in one sandbox and connects from another.',
    means: 'Sandboxes can reach each other.',
  },
  {
    id: 'ports/of-its-own',
    threats: 'N-35 M-17',
    tries: "Asks for ports of the host and of another sandbox by a sandbox's own forward.",
    means: 'A forwarded port leads to somebody else.',
  },
]

export const knownTenants: readonly KnownCase[] = [
  {
    id: 'isolation/neighbours',
    threats: 'M-01 M-02 M-04',
    tries: 'Leaves files, a process, an abstract socket and a listener in one sandbox, and looks for them in another.',
    means: 'Sandboxes see each other.',
  },
  {
    id: 'pools/never-used-again',
    threats: 'M-08',
    tries: 'Writes in a sandbox of a pool, closes it, and looks in those that follow.',
    means: "What one user's program wrote is there for the next.",
  },
  {
    id: 'pools/one-shots-apart',
    threats: 'M-08',
    tries: 'Writes in one run of a pool and looks in the next.',
    means: "What one user's program wrote is there for the next.",
  },
  {
    id: 'snapshots/forks-apart',
    threats: 'M-07',
    tries: 'Forks a sandbox and writes on both sides.',
    means: 'Forks share what they write.',
  },
  {
    id: 'liners/leave-nothing-forked',
    threats: 'M-04 M-08',
    tries: 'Leaves files, shared memory, sockets, timers, modules and processes in one liner, and looks in the next.',
    means: 'Runs that share a cell see what was left by another.',
  },
  {
    id: 'liners/leave-nothing-started',
    threats: 'M-04 M-08',
    tries: 'The same with an interpreter that is started for each run.',
    means: 'Runs that share a cell see what was left by another.',
  },
  {
    id: 'liners/apart-at-once',
    threats: 'M-02 M-04',
    tries: 'Runs two programs in liners of one cell at once.',
    means: 'Runs that share a cell see each other.',
  },
  {
    id: 'liners/makers-out-of-reach',
    threats: 'M-02 P-08',
    tries: 'From a liner, signals, traces and reads whoever makes liners.',
    means: 'A run can get at the programs of the runs that follow.',
  },
]
