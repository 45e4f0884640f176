/** The limits of one process, told from /proc/PID/limits. */

const names = {
  'Max address space': 'addressSpace',
  'Max core file size': 'core',
  'Max cpu time': 'cpu',
  'Max data size': 'data',
  'Max file locks': 'fileLocks',
  'Max file size': 'fileSize',
  'Max locked memory': 'lockedMemory',
  'Max msgqueue size': 'messageQueues',
  'Max nice priority': 'nice',
  'Max open files': 'files',
  'Max pending signals': 'pendingSignals',
  'Max processes': 'processes',
  'Max realtime priority': 'realtimePriority',
  'Max realtime timeout': 'realtimeTimeout',
  'Max resident set': 'resident',
  'Max stack size': 'stack',
} as const

export type ResourceBound = number | 'unlimited'
export type ProcessLimits = Readonly<Partial<Record<(typeof names)[keyof typeof names], readonly [soft: ResourceBound, hard: ResourceBound]>>>

/** Where the kernel begins its columns: a name of 25 characters at most, then soft, hard and the unit, 20 each. */
const columns = { soft: 26, hard: 47, unit: 68 } as const

/** Asked for every program, so it is cut rather than searched. */
export function parseLimits(text: string): ProcessLimits {
  const limits: Record<string, readonly [ResourceBound, ResourceBound]> = {}
  for (const line of text.split('\n')) {
    const label = line.slice(0, columns.soft).trimEnd()
    const name = Object.hasOwn(names, label) ? names[label as keyof typeof names] : undefined
    if (name !== undefined) limits[name] = [boundOf(line.slice(columns.soft, columns.hard)), boundOf(line.slice(columns.hard, columns.unit))]
  }
  return limits
}

/** Reads them again only where they are told otherwise than of the one before. */
export function limitsReader(): (text: string) => ProcessLimits {
  let known: { readonly text: string; readonly limits: ProcessLimits } | undefined
  return (text) => {
    if (known?.text !== text) known = { text, limits: parseLimits(text) }
    return known.limits
  }
}

function boundOf(cell: string): ResourceBound {
  const word = cell.trimEnd()
  return word === 'unlimited' ? word : Number(word)
}
