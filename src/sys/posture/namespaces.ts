import { linkInProc } from './proc-files.js'

export const namespaceNames = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts'] as const
export type NamespaceName = (typeof namespaceNames)[number]
/** Each as the kernel names it, `net:[4026531840]`: equal exactly when it is the same one. */
export type Namespaces = Readonly<Record<NamespaceName, string>>

/** A process that another user's is not allowed to look at is readable for the owner of its user namespace. */
export function readNamespaces(who: number | string): Namespaces {
  const link = (name: NamespaceName): string => linkInProc(who, `ns/${name}`)
  return { cgroup: link('cgroup'), ipc: link('ipc'), mnt: link('mnt'), net: link('net'), pid: link('pid'), user: link('user'), uts: link('uts') }
}

/** Names of those in which two processes differ. */
export function differing(one: Namespaces, other: Namespaces): NamespaceName[] {
  return namespaceNames.filter((name) => one[name] !== other[name])
}
