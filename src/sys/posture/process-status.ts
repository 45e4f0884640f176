/** What the kernel says of one process or thread in /proc/PID/status; ids are the reader's. */
export interface ProcessStatus {
  /** One letter: R running, S sleeping, Z a zombie, … */
  readonly state: string
  /** Real, effective, saved, of the file system. */
  readonly uids: readonly number[]
  readonly gids: readonly number[]
  readonly groups: readonly number[]
  /** Its number in each pid namespace, from the reader's to its own. */
  readonly pids: readonly number[]
  /** The same of the process that it is a thread of. */
  readonly processes: readonly number[]
  readonly capabilities: CapabilitySets
  readonly noNewPrivs: boolean
  /** 0 none, 1 strict, 2 filter. */
  readonly seccomp: number
  /** Null where the kernel does not count them (before 5.9). */
  readonly filters: number | null
}

/** Hexadecimal, without leading zeros. */
export interface CapabilitySets {
  readonly effective: string
  readonly permitted: string
  readonly inheritable: string
  readonly bounding: string
  readonly ambient: string
}

/** Throws where a field is missing: a status that does not say whether something holds must not pass for one that does. */
export function parseStatus(text: string): ProcessStatus {
  const fields = new Map<string, string>()
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  const field = (name: string): string => {
    const value = fields.get(name)
    if (value === undefined) throw new Error(`the kernel tells no ${name} of a process`)
    return value
  }
  const filters = fields.get('Seccomp_filters')
  return {
    state: field('State').charAt(0),
    uids: numbers(field('Uid')),
    gids: numbers(field('Gid')),
    groups: numbers(field('Groups')),
    pids: numbers(field('NSpid')),
    processes: numbers(field('NStgid')),
    capabilities: {
      effective: mask(field('CapEff')),
      permitted: mask(field('CapPrm')),
      inheritable: mask(field('CapInh')),
      bounding: mask(field('CapBnd')),
      ambient: mask(field('CapAmb')),
    },
    noNewPrivs: field('NoNewPrivs') === '1',
    seccomp: Number(field('Seccomp')),
    filters: filters === undefined ? null : Number(filters),
  }
}

function numbers(words: string): number[] {
  return words === '' ? [] : words.split(/\s+/).map(Number)
}

function mask(digits: string): string {
  return digits.replace(/^0+(?=.)/, '')
}
