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

/**
 * Throws where a field is missing: a status that does not say whether something holds must not pass for one that does. Asked for every program, so fields are sought
 * where they begin a line; the kernel lets no name of a process begin one.
 */
export function parseStatus(text: string): ProcessStatus {
  const field = (name: string): string => {
    const value = fieldOf(text, name)
    if (value === undefined) throw new Error(`the kernel tells no ${name} of a process`)
    return value
  }
  const filters = fieldOf(text, 'Seccomp_filters')
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

function fieldOf(text: string, name: string): string | undefined {
  const at = text.indexOf(`\n${name}:`)
  if (at < 0) return undefined
  const from = at + name.length + 2
  const end = text.indexOf('\n', from)
  return text.slice(from, end < 0 ? text.length : end).trim()
}

function numbers(words: string): number[] {
  return words === '' ? [] : words.split(words.includes('\t') ? '\t' : ' ').map(Number)
}

function mask(digits: string): string {
  let zeros = 0
  while (digits[zeros] === '0' && zeros < digits.length - 1) zeros += 1
  return digits.slice(zeros)
}
