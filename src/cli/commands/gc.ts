import { type Finding, sweepContainers, sweepMachine, Sweeper } from '../../recovery.js'
import { exitCodes } from '../exit-codes.js'
import { printJson, say } from '../print.js'
import { tableOf } from '../table.js'
import { writeOut } from '../streams.js'

export interface GcFlags {
  readonly dryRun?: true
  readonly json?: true
}

const notRemoved = 1

/** Ends and removes what dead processes left. Resolves to 1 when something of theirs stays. */
export async function gc({ dryRun, json }: GcFlags): Promise<number> {
  const findings: Finding[] = []
  const sweeper = new Sweeper({ isDry: dryRun === true, tell: (finding) => findings.push(finding) })
  await sweepContainers(sweeper)
  await sweepMachine(sweeper)
  if (json) await printJson({ dryRun: dryRun === true, findings: findings.map(toJson) })
  else await print(findings)
  return findings.some(({ fate }) => fate === 'failed') ? notRemoved : exitCodes.ok
}

function toJson({ kind, what, owner, fate, why }: Finding): object {
  const pid = pidOf(owner)
  return { kind, what, ...(pid !== undefined && { pid }), fate, ...(why !== undefined && { why }) }
}

const words: Readonly<Record<Finding['fate'], string>> = { removed: 'removed', due: 'would be removed', kept: 'left alone', failed: 'could not be removed' }

async function print(findings: readonly Finding[]): Promise<void> {
  const rows = inOneRow(findings).map(({ kind, what, owner, fate, why }) => [
    kind,
    what,
    String(pidOf(owner) ?? '-'),
    words[fate] + (why === undefined ? '' : `: ${why}`),
  ])
  if (rows.length > 0) await writeOut(tableOf(['KIND', 'WHAT', 'MADE BY', 'WHAT WAS DONE'], rows))
  const counted = (['removed', 'due', 'kept', 'failed'] as const).map((fate) => ({ fate, count: findings.filter((finding) => finding.fate === fate).length }))
  const told = counted.filter(({ count }) => count > 0).map(({ fate, count }) => `${count} ${words[fate]}`)
  say(told.length === 0 ? 'nothing was left behind here' : told.join(', '))
}

/** What lives may have thousands of things: of each kind there is one row. */
function inOneRow(findings: readonly Finding[]): Finding[] {
  const rows = new Map<string, Finding[]>()
  for (const finding of findings) {
    const { kind, owner, fate, why } = finding
    const key = fate === 'kept' ? JSON.stringify([kind, owner, why]) : JSON.stringify(finding)
    rows.set(key, [...(rows.get(key) ?? []), finding])
  }
  return [...rows.values()].flatMap(([first, ...others]) =>
    first ? [others.length === 0 ? first : { ...first, what: `${others.length + 1}, ${first.what} among them` }] : [],
  )
}

function pidOf(owner: string): number | undefined {
  const pid = /^(\d+)\./.exec(owner)?.[1]
  return pid === undefined ? undefined : Number(pid)
}
