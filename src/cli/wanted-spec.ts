/** A spec as the platform that it goes to can understand it: what is of this process or this machine is looked up here, where it is known. */
import { readFileSync } from 'node:fs'
import { policyInForce } from '../compose.js'
import type { NetworkInput } from '../contract/network.js'
import { parseJson } from '../contract/json-text.js'
import type { PolicyInput, PresetName } from '../contract/policy.js'
import type { SpecInput } from '../contract/spec.js'
import { effectivePolicy } from '../policy/effective-policy.js'
import type { Where } from './choose-platform.js'
import { refuseFlag } from './flag-values.js'
import { ownMark } from './sandbox-owner.js'

export interface Wanted {
  readonly spec: SpecInput
  /** What --policy names. */
  readonly own: PresetName | PolicyInput | undefined
  readonly where: Where
  /** Beyond this command. */
  readonly lasts?: true
}

/** A daemon was started under the same operator's policy; a server elsewhere knows nothing of it, so it goes along, and holds there too. */
export function wantedSpec({ spec, own, where, lasts }: Wanted): SpecInput {
  if (where === 'here') return own === undefined ? spec : { ...spec, policy: own }
  const isHeldHere = where === 'remote' && process.env.GLOVEBOX_POLICY !== undefined
  const policy = isHeldHere ? effectivePolicy(policyInForce(own)) : own
  const told = where === 'remote' ? { ...spec, ...profileOf(spec) } : lasts ? spec : { ...spec, metadata: { ...spec.metadata, ...ownMark() } }
  return policy === undefined ? told : { ...told, policy: withSecrets(policy) }
}

/** Another machine has other files. */
function profileOf({ seccomp }: SpecInput): Pick<SpecInput, 'seccomp'> {
  if (typeof seccomp !== 'string') return {}
  try {
    return { seccomp: parseJson(readFileSync(seccomp, 'utf8'), seccomp) as Record<string, unknown> }
  } catch (error) {
    throw refuseFlag('--seccomp', error instanceof Error ? error.message : String(error))
  }
}

/** Variables that a policy names are those of whoever asks: neither a daemon nor a server has them. */
function withSecrets(policy: PresetName | PolicyInput): PresetName | PolicyInput {
  if (typeof policy === 'string' || !policy.defaults?.network) return policy
  const { network } = policy.defaults
  return {
    ...policy,
    defaults: { ...policy.defaults, network: { ...network, ...(network.credentials && { credentials: network.credentials.map(withValue) }) } },
  }
}

type Credential = NonNullable<Exclude<NetworkInput, false>['credentials']>[number]

function withValue(credential: Credential): Credential {
  const { env, ...rest } = credential
  const value = env === undefined ? undefined : process.env[env]
  return value === undefined ? credential : { ...rest, value }
}
