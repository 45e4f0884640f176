import * as z from 'zod'
import type { Json } from './posture.js'
import { portSchema } from './ports.js'
import { bytesSchema, durationSchema } from './quantities.js'
import { type Secret, secretSchema } from './secret.js'

/** What a spec may say of the network. Texts of hosts are judged by `policy`, which has the one parser of them. */

const mostEntries = 1024
const mostPorts = 64

const hostTextSchema = z.string().min(1).max(300)
const portsSchema = z.array(portSchema).min(1, 'must not be empty: leave it out for 80 and 443').max(mostPorts)

const hostEntrySchema = z.strictObject({
  host: hostTextSchema.optional().describe("As in a text: 'api.example.com', '*.example.org' (any depth below it, not itself), '*', or an address."),
  cidr: hostTextSchema.optional().describe("Instead of a host: addresses, as '203.0.113.0/24'. Only for connections to an address that is written as one."),
  ports: portsSchema.optional().describe('80 and 443 when left out.'),
  methods: z
    .array(z.string().regex(/^[A-Z]{1,20}$/, "must be a method in capitals, such as 'GET'"))
    .min(1, 'must not be empty: leave it out for all')
    .max(32)
    .optional()
    .describe('Only requests with one of these; TLS is terminated for it.'),
  paths: z
    .array(
      z
        .string()
        .max(2000)
        .regex(/^\/[\x21-\x7e]*$/, "must begin with / and be printable, such as '/v1/*'"),
    )
    .min(1, 'must not be empty: leave it out for all')
    .max(256)
    .optional()
    .describe('Only requests to one of these; a * at the end stands for anything. TLS is terminated for it.'),
  terminate: z.boolean().optional().describe('Whether TLS to it is terminated.'),
})

export const networkEntrySchema = z.union([hostTextSchema.describe("'host' or 'host:port'"), hostEntrySchema])

/** The same without what is said of requests: what a policy caps. */
export const networkHostSchema = z.union([
  hostTextSchema.describe("'host' or 'host:port'"),
  z.strictObject({ host: hostTextSchema.optional(), cidr: hostTextSchema.optional(), ports: portsSchema.optional() }),
])

const credentialSchema = z.strictObject({
  host: hostTextSchema.describe("One host, with a port where it is not 443: 'api.example.com'."),
  header: z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, "must be the name of a header, such as 'authorization'"),
  value: secretSchema.optional(),
  env: z.string().min(1).max(200).optional().describe("A variable of the platform's own environment that holds the value."),
  file: z.string().startsWith('/', 'must be an absolute path').max(4095).optional().describe('A file of the host that holds the value.'),
})

const mostBytes = 2 ** 50
export const networkBytesSchema = bytesSchema({ min: 0, max: mostBytes, example: '1g' })
export const networkRateSchema = bytesSchema({ min: 1024, max: mostBytes, example: '1m' })
export const maxConnectionsSchema = z.number().int().min(1).max(1000)
const timeSchema = durationSchema({ min: 10, max: 86_400_000, example: '30s' })

export const networkLimitDefaults = { maxConnections: 10, requestTimeoutMs: 300_000, idleTimeoutMs: 120_000 } as const

const allowedSchema = z.strictObject({
  allow: z.array(networkEntrySchema).max(mostEntries).optional().describe('Where connections may go; nowhere when left out or empty.'),
  block: z.array(networkEntrySchema).max(mostEntries).optional().describe('Where they may not; without ports: at none.'),
  precedence: z.enum(['block', 'allow']).optional().describe("Which of the two wins where both match: 'block' when left out."),
  terminate: z.boolean().optional().describe('Whether TLS is terminated everywhere, so that each request is judged and logged.'),
  credentials: z.array(credentialSchema).max(64).optional().describe('Headers that the host adds, and programs never see.'),
  sni: z.enum(['match', 'any']).optional().describe("Whether TLS that is passed through must name the same host: 'match' when left out."),
  maxConnections: maxConnectionsSchema.optional().describe('At once: 10 when left out.'),
  bytes: networkBytesSchema.optional().describe('All connections together, both directions.'),
  bandwidth: networkRateSchema.optional().describe('Bytes per second of all connections together, in each direction.'),
  connectionBytes: networkBytesSchema.optional().describe('Each connection, both directions.'),
  connectionBandwidth: networkRateSchema.optional().describe('Bytes per second of each connection, in each direction.'),
  requestTimeout: timeSchema.optional().describe('The longest that one request may take: 5m when left out. Not for what is passed through.'),
  idleTimeout: timeSchema.optional().describe('How long a connection may carry nothing: 2m when left out.'),
})

/** False: none at all, now or later. An object: a way out for what it allows, which may be changed while the sandbox lives. */
export const networkSchema = z.union([z.literal(false), allowedSchema])

export type NetworkInput = z.input<typeof networkSchema>
export type Network = z.output<typeof networkSchema>
export type NetworkEntry = z.output<typeof networkEntrySchema>

/** An entry without what it leaves out. */
export function entryInJson(entry: NetworkEntry): Json {
  return JSON.parse(JSON.stringify(entry)) as Json
}

/** As people and receipts read it: of credentials, whom they are for and which header. */
export function networkInJson(network: Network): Json {
  if (network === false) return false
  const { credentials, ...rest } = network
  return JSON.parse(JSON.stringify({ ...rest, credentials: credentials?.map(({ host, header }) => ({ host, header })) })) as Json
}

/** An address once parsed. One that is written as IPv6 but stands for an IPv4 one (`::ffff:a.b.c.d`) is that IPv4 address. */
export interface Address {
  readonly family: 4 | 6
  readonly bits: bigint
  /** The one way in which it is written from then on: what is compared, logged and dialled. */
  readonly text: string
}

export interface AddressRange {
  readonly family: 4 | 6
  /** Those below the prefix are zero. */
  readonly bits: bigint
  readonly prefix: number
  readonly text: string
}

/** A host once parsed strictly: a name in lower case without a closing dot, or an address. */
export type Host = { readonly kind: 'name'; readonly name: string } | { readonly kind: 'address'; readonly address: Address }

export type HostPattern =
  /** `*` */
  | { readonly kind: 'any' }
  | { readonly kind: 'name'; readonly name: string }
  /** `*.name`: at any depth below, not itself. */
  | { readonly kind: 'below'; readonly name: string }
  /** Of a CIDR, or of one address. */
  | { readonly kind: 'range'; readonly range: AddressRange }

/** One entry, parsed. */
export interface NetworkRule {
  /** As messages, logs and people write it: `*.example.org:443`. */
  readonly text: string
  readonly pattern: HostPattern
  /** Undefined, of a block: all. */
  readonly ports: readonly number[] | undefined
  readonly methods: readonly string[] | undefined
  readonly paths: readonly string[] | undefined
  readonly terminate: boolean
}

/** A header for one host. Exactly one of the three sources is there. */
export interface Credential {
  readonly host: Host
  readonly port: number
  readonly header: string
  readonly source: { readonly value: Secret } | { readonly env: string } | { readonly file: string }
}

export interface NetworkLimits {
  readonly maxConnections: number
  /** Undefined: any. */
  readonly bytes: number | undefined
  readonly bytesPerSecond: number | undefined
  readonly connectionBytes: number | undefined
  readonly connectionBytesPerSecond: number | undefined
  readonly requestTimeoutMs: number
  readonly idleTimeoutMs: number
}

/** All that decides about a connection, parsed. */
export interface NetworkRules {
  readonly allow: readonly NetworkRule[]
  readonly block: readonly NetworkRule[]
  readonly precedence: 'block' | 'allow'
  readonly terminate: boolean
  readonly sni: 'match' | 'any'
  readonly credentials: readonly Credential[]
  readonly limits: NetworkLimits
  /** Addresses that are not public, and that the operator lets be judged as if they were. */
  readonly private: readonly AddressRange[]
}

/** `tls` is passed through unread; `tcp` is anything else of which only the target is known; the others are single requests. */
export const networkSchemes = ['http', 'https', 'ws', 'wss', 'tls', 'tcp', 'dns'] as const
export type NetworkScheme = (typeof networkSchemes)[number]

export type NetworkDoor = 'proxy' | 'direct'

/** What is known of an attempt when it is judged. */
export interface NetworkFacts {
  readonly sandbox: string
  readonly host: string
  /** Where it leads, once that is known. */
  readonly address?: string
  readonly port: number
  readonly door: NetworkDoor
  readonly scheme: NetworkScheme
  readonly method?: string
  /** Without what follows a `?`. */
  readonly path?: string
}

export { type NetworkApproval, networkApprovals } from './network-words.js'

export const networkVerdicts = ['allowed', 'denied', 'failed'] as const
export type NetworkVerdict = (typeof networkVerdicts)[number]

/** A line of the log: one connection, or one request where requests are seen. Nothing in it drives a terminal or breaks a line. */
export interface NetworkRecord extends NetworkFacts {
  /** When it began, ISO 8601. */
  readonly time: string
  /** Its id in the cell, where it is known. */
  readonly process?: number
  /** Of HTTP, as the other side gave it, or as we did. */
  readonly status?: number
  readonly bytesUp: number
  readonly bytesDown: number
  readonly durationMs: number
  readonly verdict: NetworkVerdict
  /** The entry that decided: `allow *.example.org`, `block …`, `private`, `approval`; empty when none did. */
  readonly rule: string
  /** Why it was denied or failed; empty when neither. */
  readonly reason: string
  /** How many records were dropped before this one because the reader was too slow. */
  readonly missed?: number
}

interface NetworkTotals {
  readonly connections: number
  readonly bytesUp: number
  readonly bytesDown: number
}

/** All since the sandbox was made. Of hosts, methods and statuses the first few hundred are told apart; the rest are under `other`. */
export interface NetworkSummary extends NetworkTotals {
  readonly byVerdict: Readonly<Record<NetworkVerdict, number>>
  readonly byHost: Readonly<Record<string, NetworkTotals & Readonly<Record<NetworkVerdict, number>>>>
  readonly byMethod: Readonly<Record<string, number>>
  readonly byStatus: Readonly<Record<string, number>>
  /** The ten latest, the newest last. */
  readonly latest: readonly NetworkRecord[]
}
