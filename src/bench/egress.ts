import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import type { Sandbox } from '../sandbox/index.js'
import { makeTempFolder } from '../sys/temp-folder.js'
import { client, server } from './egress-programs.js'
import { atLeast, atMost, type Measured } from './goals.js'
import type { Ground, Section } from './ground.js'
import type { Figure, Goal, Row, Table } from './report.js'
import { summarise, withRatios } from './statistics.js'
import { runPlainly } from './subjects.js'

/** Below localhost, so that every machine knows it, and a name, so that TLS can say it. */
const host = 'bench.localhost'
const requests = 300
const throughputBytes = 128 * 2 ** 20
const atOnce = 200

const goals = {
  throughput: 'TLS that is passed through carries at least 0.5 × what a direct connection does',
  through: 'a request over a kept connection that is passed through takes at most 1.5 ms longer (p50)',
  terminated: 'one whose TLS is terminated takes at most 3 ms longer (p50)',
  many: `${atOnce} connections at once hold`,
} as const

/** The same client on both sides of the wall, the same server: straight over loopback, and by the way out. */
export const egress: Section = {
  name: 'egress',
  title: 'Egress: HTTPS from inside, beside a direct connection on loopback',
  isLong: false,
  async measure(ground: Ground) {
    const folder = await makeTempFolder('glovebox-bench-')
    try {
      await using other = await openOtherSide(folder)
      const trusted = [readFileSync(join(folder, 'cert.pem'), 'utf8')]
      // As many processors as the direct client has, where they can be had.
      const defaults = { limits: { cpus: availableParallelism() } }
      await using platform = ground.createPlatform({ policy: { defaults, ceiling: { network: { private: ['127.0.0.0/8', '::1/128'] } } }, trusted })
      const create = (how: { readonly terminate: boolean }): Promise<Sandbox> =>
        ground.Sandbox.create({ platform, lifetime: '10m', network: { allow: [{ host, ports: [other.port], ...how }], maxConnections: atOnce } })
      await using through = await create({ terminate: false })
      await using terminated = await create({ terminate: true })
      return await compare({ direct: direct(other.port), through: inside(through, other.port), terminated: inside(terminated, other.port) }, ground)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
}

type Ask = (mode: 'latency' | 'bytes' | 'hold', amount: number) => Promise<readonly number[]>
type Ways = Readonly<Record<'direct' | 'through' | 'terminated', Ask>>

const names = { direct: 'direct', through: 'passed through', terminated: 'terminated' } as const

async function compare(ways: Ways, { rounds, signal }: Ground): Promise<Omit<Table, 'section' | 'title'>> {
  const samples: Record<keyof Ways, number[]> = { direct: [], through: [], terminated: [] }
  const seconds: Record<keyof Ways, number[]> = { direct: [], through: [], terminated: [] }
  const kinds = Object.keys(ways) as (keyof Ways)[]
  for (let round = 0; round < Math.max(3, Math.ceil(rounds / 10)); round += 1) {
    for (const kind of kinds) {
      signal.throwIfAborted()
      samples[kind].push(...(await ways[kind]('latency', requests)))
      seconds[kind].push(...(await ways[kind]('bytes', throughputBytes)))
    }
  }
  const rows = withRatios(kinds.map((kind) => summarise(`a kept-alive request, ${names[kind]}`, samples[kind])))
  const rates = kinds.map((kind) => ({ name: `TLS, ${names[kind]}`, value: throughputBytes / 2 ** 20 / summarise('', seconds[kind]).p50, unit: 'MiB/s' }))
  const held = await hold(ways.through)
  const figures: Figure[] = [...rates, { name: 'connections at once, all answered', value: typeof held === 'number' ? held : 0, unit: '' }]
  return { rows, figures, missing: [], goals: judge({ rows, rates, held }) }
}

async function hold(through: Ask): Promise<Measured> {
  try {
    return (await through('hold', atOnce))[0] ?? 0
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) }
  }
}

function judge({ rows, rates, held }: { readonly rows: readonly Row[]; readonly rates: readonly Figure[]; readonly held: Measured }): Goal[] {
  const [plain, through, terminated] = rows.map(({ p50 }) => p50)
  const [plainRate = Number.NaN, throughRate = Number.NaN] = rates.map(({ value }) => value)
  const added = (own: number | undefined): number => (own ?? Number.NaN) - (plain ?? Number.NaN)
  return [
    atLeast(goals.throughput, throughRate / plainRate, 0.5),
    atMost(goals.through, added(through), 1.5),
    atMost(goals.terminated, added(terminated), 3),
    atLeast(goals.many, held, atOnce),
  ]
}

const program = (port: number, ...[mode, amount]: Parameters<Ask>): string[] => ['/usr/bin/python3', '-c', client, mode, host, String(port), String(amount)]

function direct(port: number): Ask {
  return async (mode, amount) => JSON.parse(await runPlainly(['env', '-u', 'HTTPS_PROXY', ...program(port, mode, amount)])) as number[]
}

function inside(sandbox: Sandbox, port: number): Ask {
  return async (mode, amount) => {
    const { stdout, stderr, outcome } = await sandbox.run(program(port, mode, amount))
    if (outcome.kind !== 'exited' || outcome.code !== 0) throw new Error(`the client ended with ${JSON.stringify(outcome)}: ${stderr}`)
    return JSON.parse(stdout) as number[]
  }
}

interface OtherSide extends AsyncDisposable {
  readonly port: number
}

async function openOtherSide(folder: string): Promise<OtherSide> {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  await runPlainly(['openssl', 'req', '-x509', ...kind, '-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`, '-keyout', key, '-out', cert])
  const child: ChildProcessByStdio<Writable, Readable, null> = spawn(process.execPath, ['-e', server, cert, key], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return {
    port: Number(line.toString()),
    [Symbol.asyncDispose]: async () => {
      // Its end is the end of its input, so that it does not outlive us either.
      child.stdin.end()
      await once(child, 'exit')
    },
  }
}
