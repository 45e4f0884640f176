/** Names as the host resolves them: by DNS alone, without search domains, files or other ways in which a name could become another one. */
import { promises } from 'node:dns'
import type { Address } from '../contract/network.js'
import { parseAddress } from '../policy/network-address.js'
import { loopbackAddresses } from '../policy/network-reserved.js'
import { EgressError } from './egress-error.js'

export interface Resolver {
  /** All addresses, those of IPv4 first. Throws EgressError('unresolved') when there is none, or when nobody answers in time. */
  resolve(name: string, signal: AbortSignal): Promise<readonly Address[]>
}

export interface ResolverOptions {
  /** `address` or `address:port`; those of the host when not given. */
  readonly servers?: readonly string[]
  readonly timeoutMs?: number
}

/** More than anybody has; each is looked at. */
const mostAddresses = 64
const tries = 2

export function createResolver({ servers, timeoutMs = 5000 }: ResolverOptions = {}): Resolver {
  return {
    resolve: async (name, signal) => {
      if (name === 'localhost' || name.endsWith('.localhost')) return loopbackAddresses
      signal.throwIfAborted()
      // One for each question, so that calling it off calls off nobody else's; it also reads the host's configuration anew.
      const dns = new promises.Resolver({ timeout: timeoutMs / tries, tries })
      if (servers !== undefined) dns.setServers(servers)
      const cancel = (): void => dns.cancel()
      signal.addEventListener('abort', cancel, { once: true })
      const timer = setTimeout(cancel, timeoutMs).unref()
      try {
        // A closing dot keeps every resolver from trying the name below another one.
        const answers = await Promise.allSettled([dns.resolve4(`${name}.`), dns.resolve6(`${name}.`)])
        signal.throwIfAborted()
        return addressesIn(name, answers)
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', cancel)
      }
    },
  }
}

function addressesIn(name: string, answers: readonly PromiseSettledResult<string[]>[]): readonly Address[] {
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  // One that cannot be read makes the whole answer one that nobody can judge.
  const addresses = found.slice(0, mostAddresses).map((text) => parseAddress(text))
  if (addresses.some((address) => address === undefined)) throw new EgressError('unresolved', `the answer for ${name} could not be read`)
  if (addresses.length > 0) return addresses.filter((address) => address !== undefined)
  const codes = answers.flatMap((answer) => (answer.status === 'rejected' ? [(answer.reason as NodeJS.ErrnoException).code ?? 'unknown'] : []))
  const isUnknown = codes.every((code) => code === 'ENOTFOUND' || code === 'ENODATA')
  throw new EgressError('unresolved', isUnknown ? `there is no address for ${name}` : `${name} could not be resolved (${[...new Set(codes)].join(', ')})`)
}
