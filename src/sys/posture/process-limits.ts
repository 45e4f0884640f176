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

/** A name, then soft and hard, in columns that blanks fill; names have single blanks in them. */
export function parseLimits(text: string): ProcessLimits {
  const rows = text.split('\n').flatMap((line) => {
    const [label = '', soft = '', hard = ''] = line.split(/\s{2,}/)
    const name = Object.hasOwn(names, label) ? names[label as keyof typeof names] : undefined
    return name === undefined ? [] : [[name, [boundOf(soft), boundOf(hard)]] as const]
  })
  return Object.fromEntries(rows)
}

function boundOf(word: string): ResourceBound {
  return word === 'unlimited' ? word : Number(word)
}
