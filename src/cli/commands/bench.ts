import {
  chooseSections,
  environmentOf,
  layDownBurdens,
  type Ground,
  measureSection,
  missedGoals,
  renderTable,
  type Report,
  type Section,
  sections,
  type Table,
  writeReport,
} from '../../bench/index.js'
import { createPlatform } from '../../compose.js'
import { SandboxError } from '../../contract/errors.js'
import { Sandbox, SandboxPool } from '../../sandbox/index.js'
import { exitCodes } from '../exit-codes.js'
import { watchInterrupts } from '../interrupts.js'
import { colorsFor, escapeControls, printJson } from '../print.js'
import { writeOut } from '../streams.js'

export interface BenchFlags {
  readonly only?: readonly string[]
  readonly rounds?: string
  readonly out?: string
  readonly json?: true
}

const usualRounds = 20
const goalMissed = 1

/** Measures on this machine, a section at a time. Resolves to 1 when a goal was missed. */
export async function bench(flags: BenchFlags, version: string): Promise<number> {
  const chosen = chooseSections(sections, checkNames(flags.only ?? []))
  const rounds = parseRounds(flags.rounds)
  const without = layDownBurdens()
  using interrupts = watchInterrupts()
  await using platform = createPlatform()
  const ground: Ground = {
    Sandbox,
    SandboxPool,
    createPlatform,
    platform,
    cli: [process.execPath, process.argv[1] ?? ''],
    peers: { found: [], missing: [] },
    rounds,
    signal: interrupts.signal,
  }
  const report = { environment: environmentOf({ version, peers: [], without }), tables: await measureAll(chosen, { ground, isQuiet: flags.json === true }) }
  if (flags.out !== undefined) writeTo(flags.out, report)
  if (flags.json) await printJson(report)
  return missedGoals(report).length === 0 ? exitCodes.ok : goalMissed
}

async function measureAll(chosen: readonly Section[], { ground, isQuiet }: { readonly ground: Ground; readonly isQuiet: boolean }): Promise<readonly Table[]> {
  const tables: Table[] = []
  for (const section of chosen) {
    if (!isQuiet && process.stderr.isTTY) process.stderr.write(colorsFor(process.stderr).dim(`… ${section.title}\n`))
    const table = await measureSection(section, ground)
    tables.push(table)
    if (!isQuiet) await writeOut(`${tables.length === 1 ? '' : '\n'}${renderTable(table).map(escapeControls).join('\n')}\n`)
  }
  return tables
}

function checkNames(names: readonly string[]): readonly string[] {
  const known = sections.map(({ name }) => name)
  const stranger = names.find((name) => !known.includes(name))
  if (stranger === undefined) return names
  throw new SandboxError('invalid', `--only: there is no section ${JSON.stringify(stranger)}; there are ${known.join(', ')}`, { hint: 'glovebox bench --help' })
}

function parseRounds(text: string | undefined): number {
  if (text === undefined) return usualRounds
  if (/^[1-9]\d{0,4}$/.test(text)) return Number(text)
  throw new SandboxError('invalid', `--rounds: expected a whole number from 1 to 99999, got ${JSON.stringify(text)}`, { hint: 'glovebox bench --rounds 20' })
}

function writeTo(folder: string, report: Report): void {
  try {
    writeReport(report, { folder, name: 'bench' })
  } catch (error) {
    throw new SandboxError('unavailable', `--out: ${(error as Error).message}`, { cause: error })
  }
}
