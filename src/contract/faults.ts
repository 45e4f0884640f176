/**
 * The steps of a sandbox's life after which something can fail, each with a name by which a failure can be put there. Whoever makes an engine may hand it a function that is called
 * at each; nobody does but those who try what a failure leaves behind. A step that is added gets its name here, and a test that fails after it.
 */
export const faultPoints = [
  'create/prepared',
  'create/network',
  'create/ids',
  'create/lease',
  'create/bundle',
  'create/planned',
  'create/spawned',
  'create/groups',
  'create/greeted',
  'create/settled',
  'create/connected',
  'create/looked-at',
  'create/joined',
  'create/restored',
  'create/born',
  'create/shown',
  'run/begun',
  'run/counted',
  'run/started',
  'run/running',
  'run/ended',
  'snapshot/drafted',
  'snapshot/packed',
  'snapshot/still',
  'snapshot/written',
  'snapshot/sealed',
  'snapshot/placed',
  'fork/sealed',
  'fork/made',
  'close/begun',
  'close/ended',
  'close/groups',
  'close/ids',
  'close/gone',
] as const

export type FaultPoint = (typeof faultPoints)[number]

/** Called after each step; what it throws is what failed. */
export type Faults = (point: FaultPoint) => void

/** What can be told to fail; only where failures are tried. */
export interface Failing {
  readonly faults?: Faults
}
