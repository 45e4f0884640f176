/** The words of a spec and what it gets where it says nothing. Without schemas, which take longer to make than a command has to wait for most things. */

/** How strong a boundary is, weakest first. `none` is the fake driver's: never chosen unless asked for by name. */
export const tiers = ['none', 'wasm', 'process', 'container', 'gvisor', 'vm'] as const
export type Tier = (typeof tiers)[number]

export const userNames = ['user', 'root'] as const
export type UserName = (typeof userNames)[number]

/** `overlay`: it can be written to, but what is written stays in the cell, counts to its disk and is gone with it. */
export const mountModes = ['ro', 'overlay', 'rw'] as const

/** Whether the root filesystem can be written to: not at all, or all of it in a layer that counts as the cell's disk. */
export const rootModes = ['readonly', 'overlay'] as const
export type RootMode = (typeof rootModes)[number]

/** The other fields of a spec have no value where they are not stated. */
export const specDefaults = {
  template: 'host',
  lifetime: 300_000,
  onExpiry: 'close',
  user: 'user',
  root: 'readonly',
  network: false,
  ring: 2 ** 20,
  minTier: 'process',
} as const
