import type { KnownCase } from './known.js'

export const knownKernel: readonly KnownCase[] = [
  {
    id: 'isolation/unshare',
    threats: 'K-01 K-02',
    tries: 'Makes a namespace of each kind by unshare, and a user namespace by clone.',
    means: 'In a namespace of its own a program is root over parts of the kernel that ordinary programs never reach.',
  },
  {
    id: 'isolation/clone3',
    threats: 'K-03',
    tries: 'Calls clone3, whose flags a filter cannot see.',
    means: 'The filter of clone can be gone around.',
  },
  {
    id: 'isolation/setns',
    threats: 'K-04 K-29',
    tries: 'Enters the namespaces of the first process, and its own by a pidfd.',
    means: 'Programs can move to other namespaces.',
  },
  {
    id: 'isolation/mount',
    threats: 'F-25 F-26 K-14',
    tries: 'Mounts, binds, unmounts, opens trees and file systems, changes its root.',
    means: 'What is masked or read-only can be uncovered.',
  },
  {
    id: 'isolation/kernel-keys',
    threats: 'K-05',
    tries: 'Adds, requests and lists keys of the kernel.',
    means: 'Keyrings are not part of any namespace: keys of others can be read.',
  },
  {
    id: 'isolation/wide-calls',
    threats: 'K-06 K-07 K-08 K-14',
    tries: 'Calls io_uring_setup, bpf, perf_event_open, userfaultfd, syslog and personality.',
    means: 'Parts of the kernel with a long history of defects are open to programs.',
  },
  {
    id: 'isolation/socket-families',
    threats: 'K-16',
    tries: 'Opens sockets of thirteen families: packet, vsock, alg, xdp, bluetooth, can, tipc, rds, key, nfc and others.',
    means: 'Rarely walked parts of the kernel, some of them outside any network namespace, are open to programs.',
  },
  {
    id: 'isolation/vsock',
    threats: 'K-17',
    tries: 'Opens AF_VSOCK sockets of each type.',
    means: 'Programs can talk to the hypervisor and to other machines on it, past every network namespace.',
  },
  {
    id: 'isolation/typed-input',
    threats: 'K-20',
    tries: 'Pushes a character into a terminal by TIOCSTI, also with bits above the 32nd.',
    means: 'A program can type commands into the terminal of whoever started it.',
  },
  {
    id: 'isolation/capabilities',
    threats: 'K-22 K-23',
    tries: 'Reads its capability sets, and raises them by capset, the ambient set and other ids.',
    means: 'Programs have, or can gain, rights of root.',
    places: ['user', 'liner'],
  },
  {
    id: 'isolation/no-new-privileges',
    threats: 'K-22',
    tries: 'Asks whether executing a set-user-id program would gain anything.',
    means: 'A set-user-id program in the cell makes root.',
  },
  {
    id: 'isolation/filter',
    threats: 'K-22 K-25',
    tries: 'Reads from the kernel whether system calls are filtered.',
    means: 'All of the kernel is open to programs.',
  },
  {
    id: 'isolation/namespaces',
    threats: 'K-29 X-01',
    tries: "Compares its namespaces of every kind with the host's.",
    means: "A namespace of the host's is the cell's: what it separates is not separated.",
  },
  {
    id: 'isolation/root-kernel',
    threats: 'K-14 K-19 F-26 F-35',
    tries: 'As in-cell root, mounts, remounts, renames the machine, opens raw sockets and files by handle.',
    means: 'In-cell root has rights over the kernel.',
  },
  {
    id: 'root/identity',
    threats: 'K-22',
    tries: 'Reads the ids and capability sets of in-cell root.',
    means: 'In-cell root has other rights than SECURITY.md says.',
  },
  {
    id: 'isolation/warden-again',
    threats: 'K-26 A-01',
    tries: "Executes the cell's first program again, by /proc/self/exe and as an interpreter.",
    means: 'A guest can reach the program that built its cell.',
  },
]
