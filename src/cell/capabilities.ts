/** Numbers from the kernel's capability.h, for the capabilities a cell knows. */
export const capabilityNumbers = {
  CHOWN: 0,
  DAC_OVERRIDE: 1,
  FOWNER: 3,
  FSETID: 4,
  KILL: 5,
  SETGID: 6,
  SETUID: 7,
  SETPCAP: 8,
  NET_BIND_SERVICE: 10,
  NET_ADMIN: 12,
  SYS_ADMIN: 21,
  MKNOD: 27,
} as const

export type Capability = keyof typeof capabilityNumbers

/** What in-cell root has: enough to own and change files in the cell and to listen on low ports; nothing over processes or mounts. */
export const rootCapabilities: readonly Capability[] = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'NET_BIND_SERVICE']

/** What the warden starts with when the cell has ids of its own: to mount, to become its guests, to end them, and what it hands to in-cell root. */
export const wardenCapabilities: readonly Capability[] = ['SYS_ADMIN', 'SETUID', 'SETGID', 'KILL', 'SETPCAP', ...rootCapabilities]

/** With a single id there is nobody else to become or to signal. */
export const singleIdWardenCapabilities: readonly Capability[] = ['SYS_ADMIN', 'SETPCAP']

/** What the launcher needs of its own host to give a cell ids of its own. */
export const launcherCapabilities: readonly Capability[] = ['SYS_ADMIN', 'SETUID', 'SETGID', 'DAC_OVERRIDE', 'KILL', 'MKNOD']

export function capabilityMask(capabilities: readonly Capability[]): bigint {
  return capabilities.reduce((mask, name) => mask | (1n << BigInt(capabilityNumbers[name])), 0n)
}
