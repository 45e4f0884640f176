import {
  type CaseResult,
  changesIn,
  containmentCases,
  type ContainmentGroup,
  containmentGroups,
  hostCases,
  type Invariants,
  lackOfPlace,
  type Place,
  places,
  type Purpose,
  runContainment,
  runServerCases,
  serverCases,
  type ServerView,
  type Subject,
} from '../conformance/index.js'
import type { Probe } from '../contract/driver.js'
import type { PlantedHostView } from './host-view.js'
import { type CaseReport, type CheckReport, countsOf, type DriverReport, type VerifyReport } from './report.js'

/** What is told while it goes on. */
export interface VerifyProgress {
  readonly driver: string
  readonly place?: Place
  readonly done: number
  readonly total: number
  readonly id: string
}

export interface VerifyOptions {
  readonly version: string
  readonly system: string
  readonly probes: readonly Probe[]
  /** Of the probes, those to be asked; all that isolate when not given. */
  readonly drivers?: readonly string[]
  readonly groups?: readonly ContainmentGroup[]
  readonly ids?: readonly string[]
  readonly host: PlantedHostView
  /** Its sandboxes are all gone when it is disposed of. */
  readonly subjectOf: (probe: Probe) => Promise<Subject & AsyncDisposable>
  readonly serve: () => Promise<ServerView & AsyncDisposable>
  readonly signal: AbortSignal
  readonly onProgress?: (progress: VerifyProgress) => void
}

type Asked = Purpose & { readonly id: string; readonly name: string }

/** Every case that there is, whatever it is asked of. */
export const everyCase: readonly Asked[] = [...containmentCases, ...serverCases, ...hostCases]

/** Attacks this installation, driver by driver, and looks at the host before and after. */
export async function verify(options: VerifyOptions): Promise<VerifyReport> {
  const startedAt = new Date()
  const results = new Map<string, CheckReport[]>()
  const keep = (id: string, check: CheckReport): void => void results.set(id, [...(results.get(id) ?? []), check])
  const before = hostCases.some((each) => isAsked(each, options)) ? await options.host.invariants() : undefined
  const drivers: DriverReport[] = []
  const { drivers: named } = options
  for (const probe of options.probes.filter(({ driver }) => named?.includes(driver) ?? true)) drivers.push(await askDriver(probe, options, keep))
  if (drivers.some(({ why }) => why === undefined)) await askServer(options, keep)
  if (before) await askHost(options, { before, keep })
  const cases = everyCase.filter(({ id }) => results.has(id)).map((each) => reportOf(each, results.get(each.id) ?? []))
  const sorted = containmentGroups.flatMap((group) => cases.filter((each) => each.group === group))
  const counts = countsOf(sorted)
  return {
    version: options.version,
    startedAt: startedAt.toISOString(),
    durationMs: Math.round(Date.now() - startedAt.getTime()),
    host: { system: options.system, uid: process.getuid?.() ?? null },
    ok: counts.failed === 0 && counts.held > 0,
    counts,
    drivers,
    cases: sorted,
  }
}

type Keep = (id: string, check: CheckReport) => void

function reportOf({ id, name, group, threats, tries, means }: Asked, results: readonly CheckReport[]): CaseReport {
  return { id, name, group, threats, tries, means, results }
}

function isAsked({ id, group }: Asked, { groups, ids }: VerifyOptions): boolean {
  return (groups === undefined || groups.includes(group)) && (ids === undefined || ids.includes(id))
}

const nowhere = { user: {}, root: {}, liner: {} } as const

async function askDriver(probe: Probe, options: VerifyOptions, keep: Keep): Promise<DriverReport> {
  const { driver, tier } = probe
  const refusal = refusalOf(probe)
  if (refusal !== undefined) return { driver, tier, ...refusal, places: nowhere }
  await using subject = await options.subjectOf(probe)
  const cases = containmentCases.filter((each) => isAsked(each, options))
  const total = places.reduce((sum, place) => sum + (lackOfPlace(place, subject) === undefined ? casesAt(place).length : 0), 0)
  let done = 0
  const told: Record<Place, { readonly why?: string }> = { ...nowhere }
  for (const place of places) {
    const why = lackOfPlace(place, subject)
    told[place] = why === undefined ? {} : { why }
    if (why !== undefined) continue
    await runContainment(subject, {
      place,
      cases,
      signal: options.signal,
      onResult: (result) => {
        done += 1
        options.onProgress?.({ driver, place, done, total, id: result.id })
        keep(result.id, checkOf(result, { driver, place }))
      },
    })
  }
  return { driver, tier, places: told }

  function casesAt(place: Place): typeof cases {
    return cases.filter((each) => each.places.includes(place))
  }
}

function refusalOf(probe: Probe): { readonly why: string; readonly hint?: string } | undefined {
  const [first] = probe.obstacles
  if (!probe.available) return { why: probe.obstacles.map(({ what, why }) => `${what}: ${why}`).join('; '), ...(first && { hint: first.hint }) }
  if (!probe.isolates) return { why: 'it says that it does not isolate' }
  return undefined
}

function checkOf({ verdict, reason, observed, ms }: CaseResult, column: { readonly driver: string; readonly place?: Place }): CheckReport {
  return { ...column, verdict: verdict === 'passed' ? 'held' : verdict, reason, observed, ms: Math.round(ms) }
}

async function askServer(options: VerifyOptions, keep: Keep): Promise<void> {
  const cases = serverCases.filter((each) => isAsked(each, options))
  if (cases.length === 0) return
  await using server = await options.serve()
  let done = 0
  await runServerCases(server, {
    cases,
    signal: options.signal,
    onResult: (result) => {
      done += 1
      options.onProgress?.({ driver: 'server', done, total: cases.length, id: result.id })
      keep(result.id, checkOf(result, { driver: 'server' }))
    },
  })
}

/** A socket that was just destroyed, or a process that was just killed, is gone a moment later. */
const settleMs = 3000

async function askHost(options: VerifyOptions, { before, keep }: { readonly before: Invariants; readonly keep: Keep }): Promise<void> {
  const cases = hostCases.filter((each) => isAsked(each, options))
  if (cases.length === 0) return
  const { host } = options
  const until = performance.now() + settleMs
  let after = await host.invariants()
  const settled = (): boolean =>
    (['processes', 'listeners', 'cgroups', 'temporary-files', 'mounts'] as const).every((kind) => changesIn(kind, before, after).length === 0)
  while (!settled() && performance.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    after = await host.invariants()
  }
  for (const { id, kind, name } of cases) {
    const changes = kind === 'canaries' ? await touchedCanaries(host) : changesIn(kind, before, after)
    const verdict = changes.length === 0 ? 'held' : 'failed'
    const same = kind === 'canaries' ? 'untouched' : `${before[kind].length} the same`
    keep(id, { driver: 'host', verdict, reason: verdict === 'held' ? '' : name, observed: changes.slice(0, 8).join('; ') || same, ms: 0 })
  }
}

async function touchedCanaries({ canaries }: PlantedHostView): Promise<string[]> {
  const connections = canaries.tcp4.connections() + (canaries.tcp6?.connections() ?? 0) + (canaries.abstractSocket?.connections() ?? 0)
  return [
    ...((await canaries.file.isUntouched()) ? [] : ['the planted file was changed']),
    ...(connections === 0 ? [] : [`${connections} connections to the planted listeners`]),
  ]
}
