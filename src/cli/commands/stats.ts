import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../../contract/errors.js'
import type { Limits } from '../../contract/limits.js'
import type { SandboxInfo, SandboxUsage } from '../../contract/platform.js'
import { type Surroundings, withPlatform } from '../choose-platform.js'
import { exitCodes } from '../exit-codes.js'
import { printJson, say } from '../print.js'
import { lastingSandboxes } from '../sandbox-owner.js'
import { beside, shortId } from '../sandbox-page.js'
import { findSandbox } from '../sandbox-reference.js'
import { writeOut } from '../streams.js'
import { tableOf } from '../table.js'
import { bytesInWords } from '../words.js'

export interface StatsFlags {
  readonly follow?: true
  readonly json?: true
}

/** How long is looked, to tell how much of a processor is used now. */
const firstLookMs = 500
const betweenMs = 1000

interface Look {
  readonly info: SandboxInfo
  readonly usage: SandboxUsage
  readonly atMs: number
  readonly network: { readonly bytesUp: number; readonly bytesDown: number } | undefined
}

interface Stat extends Look {
  /** Of a whole one, since the last look. */
  readonly cpus: number | undefined
}

/** What each uses beside what it may; with --follow again and again, until it is stopped or none is left. */
export async function stats(sandboxes: readonly string[], flags: StatsFlags): Promise<number> {
  return withPlatform('kept', async (surroundings) => {
    const named = await Promise.all(sandboxes.map((sandbox) => findSandbox(surroundings.platform, sandbox, surroundings.signal)))
    const ids = named.length === 0 ? undefined : named.map(({ id }) => id)
    const screen = new Screen()
    let before = await lookAtAll(ids, surroundings)
    for (let waitMs = firstLookMs; ; waitMs = betweenMs) {
      if (before.size > 0 || flags.follow) await sleep(waitMs, undefined, { signal: surroundings.signal })
      const now = await lookAtAll(ids, surroundings)
      await show(
        [...now.values()].map((look) => statOf(look, before.get(look.info.id))),
        flags,
        screen,
      )
      before = now
      if (!flags.follow || (ids !== undefined && now.size === 0)) return exitCodes.ok
    }
  })
}

async function lookAtAll(ids: readonly string[] | undefined, surroundings: Surroundings): Promise<Map<string, Look>> {
  const { platform, signal } = surroundings
  const looks = new Map<string, Look>()
  const add = async (find: () => Promise<SandboxInfo>): Promise<void> => {
    const look = await unlessGone(async () => lookAt(await find(), surroundings))
    if (look) looks.set(look.info.id, look)
  }
  if (ids) for (const id of ids) await add(() => platform.info(id, { signal }))
  else for await (const info of lastingSandboxes(platform, {}, signal)) await add(() => Promise.resolve(info))
  return looks
}

async function lookAt(info: SandboxInfo, { platform, signal }: Surroundings): Promise<Look> {
  const usage = await platform.usage(info.id, { signal })
  const atMs = performance.now()
  return { info, usage, atMs, network: info.spec.network === false ? undefined : await platform.network.summary(info.id, { signal }) }
}

/** One that was closed meanwhile has nothing to tell. */
async function unlessGone<Result>(act: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof SandboxError && ['not-found', 'closed', 'expired'].includes(error.code)) return undefined
    throw error
  }
}

function statOf(look: Look, before: Look | undefined): Stat {
  const passedMs = look.atMs - (before?.atMs ?? look.atMs)
  return { ...look, cpus: before === undefined || passedMs <= 0 ? undefined : Math.max(0, look.usage.cpuMs - before.usage.cpuMs) / passedMs }
}

async function show(all: readonly Stat[], flags: StatsFlags, screen: Screen): Promise<void> {
  if (flags.json) {
    const told = all.map(inJson)
    if (flags.follow) for (const each of told) await printJson(each)
    else await printJson({ sandboxes: told })
  } else if (flags.follow) await screen.draw(tableOf(heads, all.map(cellsOf)))
  else if (all.length === 0) say('there is no sandbox; create makes one')
  else await writeOut(tableOf(heads, all.map(cellsOf)))
}

const limitsTold = ['cpus', 'memoryBytes', 'diskBytes', 'processes'] as const satisfies readonly (keyof Limits)[]

function inJson({ info, usage, network, cpus }: Stat): object {
  const { id, state, spec } = info
  const limits = Object.fromEntries(limitsTold.map((name) => [name, spec.limits[name]]))
  const at = new Date().toISOString()
  const { bytesUp, bytesDown } = network ?? {}
  return {
    id,
    ...(spec.name !== undefined && { name: spec.name }),
    state,
    at,
    cpus: cpus === undefined ? null : Math.round(cpus * 1000) / 1000,
    usage,
    limits,
    network: network === undefined ? null : { bytesUp, bytesDown },
  }
}

const heads = ['SANDBOX', 'STATE', 'CPU', 'MEMORY', 'PROCESSES', 'DISK', 'NETWORK UP / DOWN', 'RUNS']

function cellsOf({ info, usage, network, cpus }: Stat): string[] {
  const { limits, name } = info.spec
  const percent = (part: number): string => `${Math.round(part * 1000) / 10} %`
  return [
    name ?? shortId(info.id),
    info.state,
    `${cpus === undefined ? '?' : percent(cpus)} of ${percent(limits.cpus)}`,
    beside(usage.memoryBytes, limits.memoryBytes),
    `${usage.processes ?? '?'} of ${limits.processes}`,
    beside(usage.diskBytes, limits.diskBytes),
    network === undefined ? 'none' : `${bytesInWords(network.bytesUp)} / ${bytesInWords(network.bytesDown)}`,
    String(usage.runs),
  ]
}

/** A table that is drawn again over itself at a terminal, and below itself elsewhere. */
class Screen {
  #lines = 0

  async draw(table: string): Promise<void> {
    const back = process.stdout.isTTY && this.#lines > 0 ? `\u001b[${this.#lines}A\u001b[J` : ''
    const width = process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY
    // A line that goes on in the next would be counted as one.
    const fitting = table.replace(/.+/g, (line) => line.slice(0, width))
    this.#lines = fitting.split('\n').length - 1
    await writeOut(back + fitting)
  }
}
