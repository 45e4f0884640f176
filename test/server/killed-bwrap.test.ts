import { existsSync, readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { AuditRecord } from '../../src/contract/audit.js'
import { type Acknowledged, ActingLoad } from './acting-load.js'
import { isDeep, randomOf, seed } from './random.js'
import { isGone, processesOf, serverFolder, type ServerFolder, startServer, type StartedServer, tracesOf } from './started-server.js'

const points = isDeep ? 20 : 6
const longestMs = 1500
const random = randomOf(seed)
/** Told apart from everything else on this machine. */
const marker = String(process.pid) + String(Date.now() % 1_000_000)

interface Killed {
  readonly pid: number
  readonly processes: readonly number[]
  /** What it had of the machine's. */
  readonly traces: number
  readonly acknowledged: readonly Acknowledged[]
}

/** At a moment of chance, with everything under way. */
async function killUnderLoad(server: StartedServer, folder: ServerFolder): Promise<Killed> {
  const load = new ActingLoad(server, { clients: 6, random, marker })
  await sleep(random() * longestMs)
  const processes = processesOf(server.pid, marker)
  const traces = tracesOf(server.pid, folder).length
  await server.kill()
  await load.over
  expect(load.failures).toEqual([])
  return { pid: server.pid, traces, processes: [...new Set([...processes, ...processesOf(server.pid, marker)])], acknowledged: load.acknowledged }
}

async function trailOf(server: StartedServer): Promise<AuditRecord[]> {
  const lines = (await server.ask('/v1/audit/export')).text.trim().split('\n')
  return lines.flatMap((line) => (JSON.parse(line) as { readonly record?: AuditRecord }).record ?? [])
}

/** What it said was done and the trail does not have; a sandbox that was told of is known by its id, too. */
function missingIn(records: readonly AuditRecord[], acknowledged: readonly Acknowledged[]): Acknowledged[] {
  const known = new Set(records.flatMap(({ act, request, sandbox }) => [`${act} ${request}`, `${act} ${request} ${sandbox}`]))
  const keys = records.filter(({ act, of }) => act === 'key.create' && of !== undefined).length
  const told = acknowledged.filter(({ act }) => act !== 'key.create')
  const missing = told.filter(({ act, request, sandbox }) => !known.has(act === 'sandbox.create' ? `${act} ${request} ${sandbox}` : `${act} ${request}`))
  // Keys are made by whoever administers, whatever the request: counted.
  const lost = acknowledged.filter(({ act }) => act === 'key.create')
  return lost.length > keys ? [...missing, ...lost] : missing
}

/** Sandboxes of which the trail says that they were made, and not what became of them. */
function unended(records: readonly AuditRecord[]): string[] {
  const ended = new Set(records.filter(({ act }) => act === 'sandbox.end' || act === 'sandbox.lost').map(({ sandbox }) => sandbox))
  const made = records.filter(({ act, of, outcome }) => act === 'sandbox.create' && of !== undefined && outcome?.kind === 'ok')
  return made.flatMap(({ sandbox }) => (sandbox !== undefined && !ended.has(sandbox) ? [sandbox] : []))
}

/** Files of its own that it would have taken away. */
function filesLeft({ folder, temporary }: ServerFolder): string[] {
  const drafts = `${folder}/snapshots/drafts`
  return [...readdirSync(temporary), ...(existsSync(drafts) ? readdirSync(drafts) : [])]
}

test(`a server that is killed at ${points} moments of chance under load loses nothing it said was done, and nothing of it is left`, {
  timeout: 600_000,
}, async () => {
  using folder = await serverFolder()
  const acknowledged: Acknowledged[] = []
  let [processes, traces] = [0, 0]
  let server = await startServer(folder)
  try {
    for (let point = 1; point <= points; point += 1) {
      const killed = await killUnderLoad(server, folder)
      acknowledged.push(...killed.acknowledged)
      processes += killed.processes.length
      traces += killed.traces
      await expect.poll(() => killed.processes.filter((pid) => !isGone(pid))).toEqual([])
      server = await startServer(folder)
      // Whoever makes the next sandbox sweeps.
      const { stdout } = (await server.ask('/v1/runs', { body: { command: ['echo', 'again'] } })).json()
      expect([stdout, (await server.ask('/v1/sandboxes')).json()]).toEqual(['again\n', { items: [] }])
      await expect.poll(() => tracesOf(killed.pid, folder), { message: `after point ${point} of seed ${seed}` }).toEqual([])
      expect((await server.ask('/v1/audit/verify', { body: {} })).json()).toMatchObject({ valid: true })
      const records = await trailOf(server)
      expect([missingIn(records, acknowledged), unended(records)]).toEqual([[], []])
    }
    // There was something to be left.
    expect([processes, traces].every((count) => count > points)).toBe(true)
    expect(acknowledged.length).toBeGreaterThan(points * 5)
    expect(new Set(acknowledged.map(({ act }) => act)).size).toBeGreaterThan(4)
  } finally {
    await server.stop()
  }
  expect([existsSync(folder.socket), filesLeft(folder), tracesOf(server.pid, folder)]).toEqual([false, [], []])
})
