import type { Receipt, ReceiptControl } from '../contract/receipt.js'
import { explainReceipt } from '../receipt/index.js'
import { type Colors, escapeControls } from './print.js'
import { enforcedInWords, type Judgement, outcomeInWords, signatureInWords, valueInWords } from './receipt-words.js'
import { bytesInWords, durationInWords } from './words.js'
import { wrap } from './wrap.js'

const labelWidth = 11
const widths = { control: 17, requested: 20, enforced: 20 } as const

/** A receipt for people, in 80 columns: who, when and where; how the runs ended; each control and how it is known; what is not proven, and why. */
export function receiptPage(judgement: Judgement & { readonly valid: true }, colors: Colors): string {
  const { receipt } = judgement
  const sections = [
    [colors.bold(`Receipt of sandbox ${escapeControls(receipt.sandbox.id)}`), ...headLines(judgement, colors)],
    [colors.bold('Runs'), ...runLines(receipt, colors)],
    [colors.bold('Used by all runs'), ...usageLines(receipt, colors)],
    [`${colors.bold('Controls')}  ${countsLine(receipt, colors)}`, ...controlLines(receipt, colors)],
    [colors.bold('What this does not prove'), ...unprovenLines(receipt)],
  ]
  return `${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`
}

function headLines(judgement: Judgement & { readonly valid: true }, colors: Colors): string[] {
  const { sandbox, issuedAt, createdAt, state, glovebox, host, driver, template, templateId, imageDigest, from, specHash, policies } = judgement.receipt
  const age = durationInWords(Math.max(0, Date.parse(issuedAt) - Date.parse(createdAt)))
  const rows: [string, string | undefined][] = [
    ['name', sandbox.name],
    ['agent', sandbox.agent],
    ['issued', `${issuedAt}, ${age} after the sandbox was created${state === 'paused' ? '; it was paused' : ''}`],
    ['by', `glovebox ${glovebox}, on Linux ${host.kernel} ${host.arch}`],
    [
      'boundary',
      `driver ${driver.name}, tier ${driver.tier}; template ${template}${templateId === undefined ? '' : ` (${templateId.slice(0, 'sha256:'.length + 12)}…)`}`,
    ],
    ['image', imageDigest],
    ['begun with', from && `snapshot ${from.slice(0, 'sha256:'.length + 32)}…`],
    ['fresh', freshInWords(judgement.receipt)],
    ['looked at', inspectedInWords(judgement.receipt)],
    ...policies.map(({ name, hash, onExceed }): [string, string] => ['policy', `${name} (${onExceed}), SHA-256 ${hash.slice(0, 32)}…`]),
    ['spec', `SHA-256 ${specHash.slice(0, 32)}…`],
  ]
  const mark = judgement.trusted ? colors.green('✓') : colors.yellow('–')
  const told = rows.flatMap(([label, text]) => (text === undefined ? [] : [row(label, escapeControls(text), colors)]))
  return [...told, row('signature', `${mark} ${signatureInWords(judgement).text.replace(/^is /, '')}`, colors)]
}

function freshInWords({ fresh, pooled }: Receipt): string | undefined {
  if (fresh === undefined) return undefined
  const ahead = pooled === true ? ', made ahead' : ''
  return fresh === 'liner' ? `a liner of its own, in a cell${ahead}` : `a cell of its own${ahead}`
}

function inspectedInWords({ inspected: { processes, threads, complete }, cellReadAt }: Receipt): string {
  if (cellReadAt !== undefined) return `the program at its gate; the cell as a whole at ${cellReadAt}, for the program was over when this was issued`
  if (processes === 0 && complete) return 'the cell; no program was running when this was issued'
  const count = (number: number, one: string, many: string): string => `${number} ${number === 1 ? one : many}`
  return `the cell and ${count(processes, 'process', 'processes')} (${count(threads, 'thread', 'threads')}), when this was issued${complete ? '' : '; not all that were running'}`
}

function row(label: string, text: string, colors: Colors): string {
  return `  ${colors.dim(label.padEnd(labelWidth))}${wrap(text, labelWidth + 2)}`
}

function runLines({ runs, usage }: Receipt, colors: Colors): string[] {
  if (runs.length === 0) return ['  none']
  const left = usage.runs - runs.length
  const lines = runs.map((run) => row(`run ${run.number}`, [`${outcomeInWords(run.outcome)}, as ${run.user}`, ...runUsage(run)].join('; '), colors))
  return left > 0 ? [`  ${left} earlier ${left === 1 ? 'one is' : 'ones are'} not listed`, ...lines] : lines
}

function runUsage({ usage }: Receipt['runs'][number]): string[] {
  if (!usage) return []
  return [
    `${durationInWords(usage.wallMs)} with ${durationInWords(usage.cpuUserMs + usage.cpuSystemMs)} of CPU, ${bytesInWords(usage.memoryPeakBytes)} at most`,
  ]
}

function usageLines({ usage }: Receipt, colors: Colors): string[] {
  const now = (value: number | null, inWords: (value: number) => string): string => (value === null ? '' : `, ${inWords(value)} now`)
  const peak = usage.processesPeak === null ? 'not counted' : `${usage.processesPeak} at most${now(usage.processes, String)}`
  const hits = Object.entries(usage.hits).flatMap(([name, count]) => (count === null || count === 0 ? [] : [`${name} ${count} times`]))
  return [
    row('time', `${durationInWords(usage.wallMs)}, ${durationInWords(usage.cpuMs)} of CPU`, colors),
    row('memory', `${bytesInWords(usage.memoryPeakBytes)} at most${now(usage.memoryBytes, bytesInWords)}`, colors),
    row('processes', peak, colors),
    row('storage', `${bytesInWords(usage.readBytes)} read, ${bytesInWords(usage.writtenBytes)} written`, colors),
    row('printed', bytesInWords(usage.outputBytes), colors),
    ...(hits.length === 0 ? [] : [row('limits met', hits.join(', '), colors)]),
  ]
}

function countsLine({ controls }: Receipt, colors: Colors): string {
  const count = (...verdicts: ReceiptControl['verdict'][]): number => controls.filter(({ verdict }) => verdicts.includes(verdict)).length
  const bare = count('not-enforced')
  const parts = [`${colors.green('✓')} ${count('proven')} proven`, `${colors.yellow('–')} ${count('told', 'asserted')} not proven`]
  return [...parts, ...(bare === 0 ? [] : [`${colors.red('✗')} ${bare} not enforced`])].join('  ')
}

function controlLines({ controls }: Receipt, colors: Colors): string[] {
  const subjects = [...new Set(controls.map(({ subject }) => subject))]
  const head = `    ${'control'.padEnd(widths.control)} ${'requested'.padEnd(widths.requested)} ${'enforced'.padEnd(widths.enforced)} known by`
  const lines = subjects.flatMap((subject) => [
    `  ${escapeControls(subject)}`,
    ...controls.filter((control) => control.subject === subject).map((control) => controlLine(control, colors)),
  ])
  return [colors.dim(head), ...lines, ...legend(controls).map(colors.dim)]
}

const statedMarks = { spec: ' *', policy: ' +', default: '' } as const

function legend(controls: readonly ReceiptControl[]): string[] {
  const has = (who: ReceiptControl['stated']): boolean => controls.some(({ stated }) => stated === who)
  const words = [...(has('spec') ? ['* stated by whoever asked'] : []), ...(has('policy') ? ['+ by a policy'] : [])]
  return words.length === 0 ? [] : [`  ${words.join('; ')}; the rest are defaults`]
}

function controlLine(control: ReceiptControl, colors: Colors): string {
  const asked = valueInWords(control.control, control.requested) + statedMarks[control.stated]
  const cells = [fit(escapeControls(control.control), widths.control), fit(asked, widths.requested), fit(enforcedInWords(control), widths.enforced)]
  return `  ${markOf(control.verdict, colors)} ${cells.join(' ')} ${knownBy(control)}`
}

function knownBy({ verdict, evidence }: ReceiptControl): string {
  return verdict === 'not-enforced' || verdict === 'not-asked' ? verdict.replace('-', ' ') : evidence
}

function markOf(verdict: ReceiptControl['verdict'], colors: Colors): string {
  switch (verdict) {
    case 'proven':
      return colors.green('✓')
    case 'told':
    case 'asserted':
      return colors.yellow('–')
    case 'not-enforced':
      return colors.red('✗')
    case 'not-asked':
      return ' '
  }
}

/** Exactly as wide as its column. */
function fit(text: string, width: number): string {
  return text.length <= width ? text.padEnd(width) : `${text.slice(0, width - 1)}…`
}

function unprovenLines(receipt: Receipt): string[] {
  const lines = [...explainReceipt(receipt), 'that the host itself was honest: whoever is root there can sign anything']
  return lines.map((line) => `  · ${wrap(escapeControls(line), 4)}`)
}
