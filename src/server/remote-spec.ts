/** What a caller over HTTP may not ask for unless the operator says so: whatever reaches into the machine itself. */
import { SandboxError } from '../contract/errors.js'

/** What the operator lets callers have. */
export interface Allowance {
  /** Folders of the host, within what the operator's policy caps. */
  readonly mounts: boolean
  /** Filters of their own. */
  readonly seccomp: boolean
  /** Drivers without walls, by name. */
  readonly drivers: readonly string[]
}

export const nothingAllowed: Allowance = { mounts: false, seccomp: false, drivers: [] }

type Fields = Readonly<Record<string, unknown>>

/** Throws SandboxError('forbidden') naming the field. What is wrong in another way is the platform's to say. */
export function checkRemoteSpec(spec: unknown, allowed: Allowance | 'everything'): void {
  if (allowed === 'everything') return
  const { mounts, seccomp, driver, minTier, network, policy } = fieldsOf(spec)
  if (Array.isArray(mounts) && mounts.length > 0 && !allowed.mounts) throw refusal('mounts', 'folders of the machine are not for callers over HTTP')
  if (seccomp !== undefined && !allowed.seccomp) throw refusal('seccomp', 'filters of their own are not for callers over HTTP')
  // The path of a file of the machine, whatever is allowed.
  if (typeof seccomp === 'string') throw refusal('seccomp', 'over HTTP it must be the profile itself, not a path')
  const isWalled = minTier !== 'none' && driver !== 'fake'
  if (!isWalled && !(typeof driver === 'string' && allowed.drivers.includes(driver)))
    throw refusal(driver === 'fake' ? 'driver' : 'minTier', 'a sandbox without walls is not for callers over HTTP')
  checkRemoteNetwork(network, 'network')
  const { defaults } = fieldsOf(policy)
  if (defaults !== undefined) checkRemoteSpec(defaults, allowed)
}

/** The host's environment and files are the operator's, also where only a header is made of them. */
export function checkRemoteNetwork(network: unknown, field: string): void {
  const { credentials } = fieldsOf(network)
  for (const [index, credential] of (Array.isArray(credentials) ? (credentials as unknown[]) : []).entries()) {
    const named = ['env', 'file'].find((name) => Object.hasOwn(fieldsOf(credential), name))
    if (named !== undefined) throw refusal(`${field}.credentials[${index}].${named}`, 'over HTTP a credential is given by its value')
  }
}

const setIds = 0o6000

/** No program becomes somebody else by them in a cell; whoever asks for them over HTTP means something that there is not. */
export function checkRemoteMode(mode = 0): void {
  if ((mode & setIds) !== 0) throw refusal('mode', 'set-id bits are not for callers over HTTP')
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function refusal(field: string, why: string): SandboxError {
  return new SandboxError('forbidden', `${field}: ${why}`, { hint: 'glovebox serve --policy FILE' })
}
