/** What a policy lets a spec say of the network: which hosts it may allow, how much of it there may be, and whether there may be any. */
import { type Network, type NetworkEntry, type NetworkRule, entryInJson, networkInJson, networkLimitDefaults } from '../contract/network.js'
import type { NetworkCeiling } from '../contract/policy.js'
import { isRangeIn, parseRange } from './network-address.js'
import { parseRangeField, parseRule, patternText } from './network-rules.js'
import { valueInWords } from './policy-words.js'
import type { Excess } from './wish.js'

/** Throws SandboxError('invalid') naming the entry that cannot be read. */
export function checkNetworkCeiling(ceiling: NetworkCeiling | undefined): void {
  if (ceiling === undefined || ceiling === false) return
  rulesIn(ceiling.hosts ?? [])
  for (const [index, text] of (ceiling.private ?? []).entries()) parseRangeField(text, `ceiling.network.private[${index}]`)
}

function rulesIn(hosts: readonly NetworkEntry[]): readonly NetworkRule[] {
  return hosts.map((entry, index) => parseRule(entry, { field: `ceiling.network.hosts[${index}]` }))
}

/** What both allow, and no more. */
export function intersectNetworks(a: NetworkCeiling | undefined, b: NetworkCeiling | undefined): NetworkCeiling | undefined {
  if (a === false || b === false) return false
  const [one, other] = [a ?? {}, b ?? {}]
  const least = (x: number | undefined, y: number | undefined) => (x === undefined || y === undefined ? (x ?? y) : Math.min(x, y))
  const both = {
    hosts: hostsInBoth(one.hosts, other.hosts),
    private: rangesInBoth(one.private, other.private),
    maxConnections: least(one.maxConnections, other.maxConnections),
    bytes: least(one.bytes, other.bytes),
    bandwidth: least(one.bandwidth, other.bandwidth),
  }
  const known = Object.entries(both).filter(([, value]) => value !== undefined)
  return known.length === 0 ? (a ?? b) : Object.fromEntries(known)
}

function hostsInBoth(a: readonly NetworkEntry[] | undefined, b: readonly NetworkEntry[] | undefined): NetworkEntry[] | undefined {
  if (a === undefined || b === undefined) return (a ?? b) && outermost(rulesIn(a ?? b ?? [])).map(entryOf)
  const [one, other] = [rulesIn(a), rulesIn(b)]
  return outermost(one.flatMap((x) => other.flatMap((y) => intersection(x, y) ?? []))).map(entryOf)
}

/** Sorted, without those that are in another one. */
function outermost(rules: readonly NetworkRule[]): NetworkRule[] {
  const different = [...new Map(rules.map((rule) => [rule.text, rule])).values()]
  const isInAnother = (rule: NetworkRule): boolean => different.some((other) => other !== rule && isWithinRule(rule, other))
  return different.filter((rule) => !isInAnother(rule)).sort((x, y) => (x.text < y.text ? -1 : 1))
}

/** As it is written: a text where a text can say it. */
function entryOf({ pattern, ports, methods, paths, text }: NetworkRule): NetworkEntry {
  const isPlain = (methods ?? paths) === undefined
  if (isPlain && !text.includes(',') && !(pattern.kind === 'range' && text.includes('/'))) return text
  const whom = pattern.kind === 'range' && patternText(pattern).includes('/') ? { cidr: pattern.range.text } : { host: patternText(pattern) }
  return { ...whom, ...(ports !== undefined && { ports: [...ports] }), ...(methods && { methods: [...methods] }), ...(paths && { paths: [...paths] }) }
}

/** The narrower of two patterns that lie in each other, at the ports of both. */
function intersection(a: NetworkRule, b: NetworkRule): NetworkRule | undefined {
  const inner = isPatternIn(a, b) ? a : isPatternIn(b, a) ? b : undefined
  const ports = (a.ports ?? []).filter((port) => b.ports?.includes(port) ?? true)
  if (inner === undefined || ports.length === 0) return undefined
  const { methods, paths, terminate } = a
  const entry = entryOf({ ...inner, ports, methods, paths, text: ',' })
  return { ...parseRule(entry, { field: 'network.allow' }), terminate }
}

function isWithinRule(inner: NetworkRule, outer: NetworkRule): boolean {
  return isPatternIn(inner, outer) && (inner.ports?.every((port) => outer.ports?.includes(port) ?? true) ?? outer.ports === undefined)
}

function isPatternIn({ pattern: inner }: NetworkRule, { pattern: outer }: NetworkRule): boolean {
  switch (outer.kind) {
    case 'any':
      return true
    case 'name':
      return inner.kind === 'name' && inner.name === outer.name
    case 'below':
      if (inner.kind === 'below' && inner.name === outer.name) return true
      return (inner.kind === 'name' || inner.kind === 'below') && inner.name.endsWith(`.${outer.name}`)
    case 'range':
      return inner.kind === 'range' && isRangeIn(inner.range, outer.range)
  }
}

/** Addresses that both name. Who names none leaves it to the other; that only an operator may name any is held by whoever puts policies together. */
function rangesInBoth(a: readonly string[] | undefined, b: readonly string[] | undefined): string[] | undefined {
  const parse = (texts: readonly string[]) => texts.map((text, index) => parseRangeField(text, `ceiling.network.private[${index}]`))
  const only = a ?? b
  if (only === undefined) return undefined
  const [one, other] = [parse(a ?? only), parse(b ?? only)]
  const inner = one.flatMap((x) => other.flatMap((y) => (isRangeIn(x, y) ? [x] : isRangeIn(y, x) ? [y] : [])))
  const different = [...new Map(inner.map((range) => [range.text, range])).values()]
  return different
    .filter((range) => !different.some((wider) => wider !== range && isRangeIn(range, wider)))
    .map(({ text }) => text)
    .sort()
}

/** Whether all that the first names is in what the second does. */
export function areRangesWithin(texts: readonly string[], outer: readonly string[]): boolean {
  const ranges = (list: readonly string[]) => list.map(parseRange).filter((range) => typeof range !== 'string')
  return ranges(texts).every((range) => ranges(outer).some((wider) => isRangeIn(range, wider)))
}

interface HeldNetwork {
  readonly value: Network
  readonly excesses: readonly Excess[]
}

/** Brought down to a ceiling. What is asked is told without what credentials hold. */
export function holdNetwork(asked: Network, ceiling: NetworkCeiling | undefined): HeldNetwork {
  if (asked === false || ceiling === undefined) return { value: asked, excesses: [] }
  if (ceiling === false) {
    const words = (policy: string): string => `policy '${policy}' allows none`
    return { value: false, excesses: [{ field: 'network', asked: networkInJson(asked), given: false, words }] }
  }
  const allow = (asked.allow ?? []).map((entry, index) => holdEntry(entry, { index, hosts: ceiling.hosts }))
  const numbers = [
    holdNumber('maxConnections', asked.maxConnections ?? networkLimitDefaults.maxConnections, ceiling.maxConnections),
    holdNumber('bytes', asked.bytes, ceiling.bytes),
    holdNumber('bandwidth', asked.bandwidth, ceiling.bandwidth),
  ]
  return {
    value: {
      ...asked,
      ...(asked.allow !== undefined && { allow: allow.flatMap(({ entries }) => entries) }),
      ...Object.fromEntries(numbers.filter(({ excesses }) => excesses.length > 0).map(({ name, value }) => [name, value])),
    },
    excesses: [...allow, ...numbers].flatMap(({ excesses }) => excesses),
  }
}

interface EntryCaps {
  readonly index: number
  readonly hosts: readonly NetworkEntry[] | undefined
}

function holdEntry(entry: NetworkEntry, { index, hosts }: EntryCaps): { readonly entries: readonly NetworkEntry[]; readonly excesses: readonly Excess[] } {
  const field = `network.allow[${index}]`
  const rule = parseRule(entry, { field })
  const caps = hosts && rulesIn(hosts)
  if (caps === undefined || caps.some((cap) => isWithinRule(rule, cap))) return { entries: [entry], excesses: [] }
  const own = typeof entry === 'string' ? {} : { terminate: entry.terminate }
  const within = outermost(caps.flatMap((cap) => intersection(rule, cap) ?? [])).map(entryOf)
  const entries = own.terminate === undefined ? within : within.map((each) => ({ ...(typeof each === 'string' ? { host: each } : each), ...own }))
  const words = (policy: string): string => `'${rule.text}' is not within what policy '${policy}' allows (${caps.map(({ text }) => text).join(', ') || 'none'})`
  return { entries, excesses: [{ field, asked: entryInJson(entry), given: entries.length === 0 ? null : entries.map(entryInJson), words }] }
}

function holdNumber(name: 'maxConnections' | 'bytes' | 'bandwidth', asked: number | undefined, cap: number | undefined) {
  if (cap === undefined || (asked !== undefined && asked <= cap)) return { name, value: asked, excesses: [] }
  const field = `network.${name}`
  const words = (policy: string): string =>
    `${asked === undefined ? 'no limit' : valueInWords(field, asked)} is above the ${valueInWords(field, cap, Math.floor)} that policy '${policy}' allows`
  return { name, value: cap, excesses: [{ field, asked: asked ?? null, given: cap, words }] }
}
