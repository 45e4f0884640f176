/** The decision about one attempt, by its host and port and what is known of a request. Pure; addresses that a name leads to are judged apart. */
import type { Address, Host, NetworkRule, NetworkRules } from '../contract/network.js'
import { isIn } from './network-address.js'
import { hostText, isSameHost } from './network-host.js'
import { isPathAllowed, isPathBlocked } from './network-paths.js'
import { readingsOf, reservedKind, reservedNameKind } from './network-reserved.js'

export interface Question {
  readonly host: Host
  readonly port: number
  /** `unknown`: not yet, each will be asked for. `opaque`: never, since nobody reads them. */
  readonly request: Asked | 'unknown' | 'opaque'
}

interface Asked {
  readonly method: string
  readonly path: string
  /** What a server may take instead, since a header of the request says so. */
  readonly instead?: { readonly methods: readonly string[]; readonly paths: readonly string[] }
}

/** More of them say nothing that a program could need, and each is judged with each. */
const mostInstead = 4

/** Of a request that servers may read in several ways: allowed when each of them is. */
export function decideAll(rules: NetworkRules, question: Question): Decision {
  const decision = decide(rules, question)
  const { request } = question
  if (typeof request === 'string' || request.instead === undefined || decision.verdict !== 'allow') return decision
  const { method, path, instead } = request
  const [code] = (['method', 'path'] as const).filter((each) => instead[`${each}s`].length > mostInstead)
  if (code !== undefined) return { verdict: 'deny', code, rule: `allow ${decision.rule.text}`, why: `headers name more than ${mostInstead} other ${code}s` }
  const others = [method, ...instead.methods].flatMap((each) => [path, ...instead.paths].map((at) => ({ method: each, path: at })))
  return others.map((other) => decide(rules, { ...question, request: other })).find(({ verdict }) => verdict !== 'allow') ?? decision
}

export type Decision =
  | { readonly verdict: 'allow'; readonly rule: NetworkRule }
  /** No rule says anything of it: denied, unless somebody approves. */
  | { readonly verdict: 'undecided' }
  | { readonly verdict: 'deny'; readonly code: 'private' | 'blocked' | 'method' | 'path' | 'opaque'; readonly rule: string; readonly why: string }

export function decide(rules: NetworkRules, question: Question): Decision {
  const { host } = question
  const kind = host.kind === 'name' ? reservedNameKind(host.name, rules.private) : reservedKind(host.address, rules.private)
  if (kind !== undefined) return { verdict: 'deny', code: 'private', rule: 'private', why: `${hostText(host)} is ${kind}` }
  const allowed = decideAllow(rules, question)
  if (rules.precedence === 'allow' && allowed.verdict === 'allow') return allowed
  const blocked = rules.block.find((rule) => isBlocking(rule, question))
  if (blocked !== undefined) return { verdict: 'deny', code: 'blocked', rule: `block ${blocked.text}`, why: `it is blocked by '${blocked.text}'` }
  return allowed
}

function decideAllow({ allow }: NetworkRules, question: Question): Decision {
  const { request, port } = question
  const near = allow.filter((rule) => isHost(rule, question.host, { isBlock: false }) && (rule.ports?.includes(port) ?? true))
  const [first] = near
  if (first === undefined) return { verdict: 'undecided' }
  if (request === 'unknown') return { verdict: 'allow', rule: first }
  if (request === 'opaque') {
    const open = near.find((rule) => !rule.terminate && rule.methods === undefined && rule.paths === undefined)
    const why = `'${first.text}' is for requests that can be read: HTTP, or TLS that is terminated`
    return open === undefined ? { verdict: 'deny', code: 'opaque', rule: `allow ${first.text}`, why } : { verdict: 'allow', rule: open }
  }
  const { method, path } = request
  const withMethod = near.filter((rule) => rule.methods?.includes(method) ?? true)
  const whole = withMethod.find((rule) => rule.paths === undefined || isPathAllowed(path, rule.paths))
  if (whole !== undefined) return { verdict: 'allow', rule: whole }
  const code = withMethod.length === 0 ? 'method' : 'path'
  const nearest = withMethod[0] ?? first
  const why = `this ${code} is not among those of '${nearest.text}'`
  return { verdict: 'deny', code, rule: `allow ${nearest.text}`, why }
}

/** What cannot be read is blocked by a rule that would have to read it. */
function isBlocking(rule: NetworkRule, { host, port, request }: Question): boolean {
  if (!isHost(rule, host, { isBlock: true }) || !(rule.ports?.includes(port) ?? true)) return false
  if ((rule.methods ?? rule.paths) === undefined || request === 'opaque') return true
  if (request === 'unknown') return false
  const { method, path } = request
  return (rule.methods?.includes(method) ?? true) && (rule.paths === undefined || isPathBlocked(path, rule.paths))
}

function isHost({ pattern }: NetworkRule, host: Host, { isBlock }: { readonly isBlock: boolean }): boolean {
  switch (pattern.kind) {
    case 'any':
      return true
    case 'name':
      return host.kind === 'name' && host.name === pattern.name
    case 'below':
      return host.kind === 'name' && host.name.endsWith(`.${pattern.name}`)
    case 'range':
      // A block holds whatever an address is wrapped in; what is allowed is only what is written.
      return host.kind === 'address' && (isBlock ? readingsOf(host.address) : [host.address]).some((address) => isIn(address, pattern.range))
  }
}

/** Why an address that a name leads to may not be dialled; undefined when it may. */
export function addressRefusal(rules: NetworkRules, { address, port }: { readonly address: Address; readonly port: number }) {
  const kind = reservedKind(address, rules.private)
  if (kind !== undefined) return { code: 'private', rule: 'private', why: `it leads to ${address.text}, which is ${kind}` } as const
  const isHit = (rule: NetworkRule): boolean =>
    rule.pattern.kind === 'range' && isBlocking(rule, { host: { kind: 'address', address }, port, request: 'opaque' })
  // Who lets a name win over blocks has allowed it already.
  const block = rules.precedence === 'allow' ? undefined : rules.block.find(isHit)
  return block && ({ code: 'blocked', rule: `block ${block.text}`, why: `it leads to ${address.text}, which is blocked by '${block.text}'` } as const)
}

/** Whether TLS to it is to be terminated: a rule that speaks of it says so, or a credential is for it. */
export function mustTerminate(rules: NetworkRules, host: Host, port: number): boolean {
  const speaksOf = (rules: readonly NetworkRule[], how: { readonly isBlock: boolean }) =>
    rules.filter((rule) => isHost(rule, host, how) && (rule.ports?.includes(port) ?? true))
  const near = speaksOf(rules.allow, { isBlock: false })
  const readers = speaksOf(rules.block, { isBlock: true }).some((rule) => (rule.methods ?? rule.paths) !== undefined)
  const hasCredential = rules.credentials.some((credential) => credential.port === port && isSameHost(credential.host, host))
  return hasCredential || readers || (near.length === 0 ? rules.terminate : near.some((rule) => rule.terminate))
}

/** Whether a name may be told an address: some port of it could be allowed. */
export function isNameKnown(rules: NetworkRules, name: string): boolean {
  const host: Host = { kind: 'name', name }
  const ports = rules.allow.filter((rule) => isHost(rule, host, { isBlock: false })).flatMap((rule) => rule.ports ?? [])
  return ports.some((port) => decide(rules, { host, port, request: 'unknown' }).verdict === 'allow')
}
