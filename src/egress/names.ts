/**
 * Addresses that stand for names. A program that knows no proxy resolves a name first and then connects to an address: so that its name is known then, it
 * is told an address that belongs to that name alone, in this sandbox. Nothing is asked of anybody, and no such address exists outside.
 */
import type { Address } from '../contract/network.js'
import { addressOf, isIn, parseRange } from '../policy/network-address.js'
import { parseHost } from '../policy/network-host.js'
import { parseQuery, queryTypes, responseCodes, writeReply } from './dns-message.js'

const v4First = 0xc612_0000n
const v6First = 0xfd67_6c6f_7665n << 80n
const mostIndex = 2 ** 17 - 2
const mostNames = 4096
const ranges = ['198.18.0.0/15', 'fd67:6c6f:7665::/48'].map(parseRange).filter((range) => typeof range !== 'string')

/** Whether it could stand for a name. */
export function isSynthetic(address: Address): boolean {
  return ranges.some((range) => isIn(address, range))
}

export class SyntheticNames {
  /** The least recently used first. */
  readonly #indexes = new Map<string, number>()
  readonly #names = new Map<number, string>()
  readonly #most: number
  #last = 0

  constructor(most = mostNames) {
    this.#most = most
  }

  /** Of IPv4 and of IPv6. */
  addressesOf(name: string): { readonly v4: Address; readonly v6: Address } {
    const index = BigInt(this.#indexes.get(name) ?? this.#nextIndex())
    this.#keep(name, Number(index))
    return { v4: addressOf(4, v4First + index), v6: addressOf(6, v6First + index) }
  }

  /** Undefined when it stands for none, or no longer. */
  nameAt({ family, bits }: Address): string | undefined {
    const index = bits - (family === 4 ? v4First : v6First)
    const name = index > 0n && index <= BigInt(mostIndex) ? this.#names.get(Number(index)) : undefined
    if (name !== undefined) this.#keep(name, Number(index))
    return name
  }

  #keep(name: string, index: number): void {
    this.#indexes.delete(name)
    this.#indexes.set(name, index)
    this.#names.set(index, name)
    if (this.#indexes.size <= this.#most) return
    const [oldest] = this.#indexes
    if (oldest === undefined) return
    this.#indexes.delete(oldest[0])
    this.#names.delete(oldest[1])
  }

  /** An address is given to another name as late as possible. */
  #nextIndex(): number {
    do this.#last = this.#last === mostIndex ? 1 : this.#last + 1
    while (this.#names.has(this.#last))
    return this.#last
  }
}

export interface Answering {
  readonly names: SyntheticNames
  readonly isKnown: (name: string) => boolean
  readonly onDenied: (name: string) => void
}

/** Undefined: no answer. */
export function answerQuery(bytes: Uint8Array, { names, isKnown, onDenied }: Answering): Uint8Array | undefined {
  const query = parseQuery(bytes)
  if (query === 'silence') return undefined
  if ('code' in query) return writeReply({ id: query.id, wantsRecursion: false, question: new Uint8Array() }, query.code)
  const host = parseHost(query.name)
  if (host?.kind !== 'name' || !isKnown(host.name)) {
    onDenied(query.name)
    return writeReply(query, responseCodes.unknownName)
  }
  if (query.type === queryTypes.a) return writeReply(query, responseCodes.ok, [names.addressesOf(host.name).v4])
  if (query.type === queryTypes.aaaa) return writeReply(query, responseCodes.ok, [names.addressesOf(host.name).v6])
  return writeReply(query, responseCodes.ok)
}
