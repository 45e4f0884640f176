import type { Policy } from '../contract/policy.js'
import type { Finding } from './audit.js'
import { isIn, parseAddress, parseRange } from './network-address.js'
import { parseRule } from './network-rules.js'
import { printable } from './refusal.js'

/** What leads back to this machine, or to the keys of whoever pays for it. */
const dangerous = ['127.0.0.1', '::1', '0.0.0.0', '169.254.169.254', '168.63.129.16', '100.100.100.200', 'fd00:ec2::254']

export function auditNetwork({ ceiling, defaults }: Policy): Finding[] {
  const { network } = ceiling
  if (network === false) return []
  const rules = network?.hosts?.map((entry, index) => parseRule(entry, { field: `ceiling.network.hosts[${index}]` }))
  const anyHost: Finding = {
    severity: 'medium',
    field: network?.hosts === undefined ? 'ceiling.network' : 'ceiling.network.hosts',
    grant: 'a spec may allow connections to any public host',
    consequence: 'whatever its programs can read they can send anywhere',
  }
  return [
    ...(rules === undefined || rules.some(({ pattern }) => pattern.kind === 'any') ? [anyHost] : []),
    ...(network?.private ?? []).map(privateFinding),
    ...credentialFindings(defaults.network),
  ]
}

function privateFinding(text: string): Finding {
  const range = parseRange(text)
  const isDangerous = typeof range === 'string' || dangerous.map(parseAddress).some((address) => address !== undefined && isIn(address, range))
  return {
    severity: isDangerous ? 'high' : 'medium',
    field: 'ceiling.network.private',
    grant: `connections to ${printable(text)}, which is not public`,
    consequence: isDangerous
      ? 'programs reach services of this machine or of its cloud, which take them for the machine itself'
      : 'programs reach neighbours of this machine; any name that is allowed may lead there',
  }
}

/** Values are never shown. */
function credentialFindings(network: Policy['defaults']['network']): Finding[] {
  const credentials = network === undefined || network === false ? [] : (network.credentials ?? [])
  return credentials.flatMap(({ value }, index) =>
    value === undefined
      ? []
      : [
          {
            severity: 'high' as const,
            field: `defaults.network.credentials[${index}].value`,
            grant: 'a credential stands in this file',
            consequence: 'all who can read the file have it: name a file or a variable of the host instead',
          },
        ],
  )
}
