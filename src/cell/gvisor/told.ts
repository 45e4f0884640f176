/** What gVisor's own kernel says, as its /proc has it and the warden hands it on. It is the runtime's word: the host's kernel knows nothing of it. */
import type { Observation } from '../../contract/posture.js'
import { parseLimits } from '../../sys/posture/process-limits.js'

/** Of the cell, in the warden's order. */
export interface ToldOfCell {
  readonly version: string
  /** The beginning of its log. */
  readonly log: string
  readonly status: ToldStatus
  readonly mounts: string
  readonly interfaces: string
}

/** Fields that a kernel does not have are undefined. */
export interface ToldStatus {
  readonly uids: readonly number[]
  readonly gids: readonly number[]
  readonly groups: readonly number[]
  readonly capabilities: {
    readonly effective: string
    readonly permitted: string
    readonly inheritable: string
    readonly bounding: string
    readonly ambient: string
  }
  readonly noNewPrivs: boolean | undefined
  readonly seccomp: number
}

export function parseToldOfCell(text: string): ToldOfCell {
  const [version = '', log = '', mounts = '', interfaces = '', status = ''] = text.split('\0')
  return { version: version.trim(), log, status: parseToldStatus(status), mounts, interfaces }
}

/** A program names itself, and that comes first: of each field the last is the kernel's. Throws where one is missing that every kernel has. */
export function parseToldStatus(text: string): ToldStatus {
  const fields = new Map(text.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]))
  const field = (name: string): string => {
    const value = fields.get(name)
    if (value === undefined) throw new Error(`gVisor tells no ${name} of a process`)
    return value
  }
  const mask = (name: string): string => field(name).replace(/^0+(?=.)/, '')
  const inheritable = mask('CapInh')
  const noNewPrivs = fields.get('NoNewPrivs')
  return {
    uids: numbers(field('Uid')),
    gids: numbers(field('Gid')),
    groups: numbers(field('Groups')),
    capabilities: {
      effective: mask('CapEff'),
      permitted: mask('CapPrm'),
      inheritable,
      bounding: mask('CapBnd'),
      // None is ambient that is not inheritable too.
      ambient: fields.has('CapAmb') ? mask('CapAmb') : inheritable,
    },
    noNewPrivs: noNewPrivs === undefined ? undefined : noNewPrivs === '1',
    seccomp: Number(field('Seccomp')),
  }
}

function numbers(words: string): number[] {
  return words.split(/\s+/).flatMap((word) => (word === '' ? [] : [Number(word)]))
}

const source = "gVisor's /proc, read by the warden"

function told(control: string, value: Observation['value']): Observation {
  return { control, value, evidence: 'runtime', source }
}

function unknown(control: string, why: string): Observation {
  return { control, value: null, evidence: 'asserted', source: why }
}

/** Groups from here up are the warden's marks. */
const firstMark = 2 ** 31

/** Of a program at its gate. */
export function observeTold(text: string, depth: 'full' | 'short'): Observation[] {
  const [status = '', limits = ''] = text.split('\0')
  const { uids, gids, groups, capabilities, noNewPrivs, seccomp } = parseToldStatus(status)
  // By its mark the warden knows a run's processes, where gVisor gives it nothing better; nobody in the cell can have or lose one.
  const others = groups.filter((group) => group < firstMark).sort((one, other) => one - other)
  const isOne = (ids: readonly number[]): boolean => ids.every((id) => id === ids[0])
  const ids =
    isOne(uids) && isOne(gids)
      ? { uid: uids[0] ?? null, gid: gids[0] ?? null, groups: others }
      : `uids ${uids.join(' ')} and gids ${gids.join(' ')} are not one each`
  const short = [
    told('ids', ids),
    told('capabilities', capabilities),
    noNewPrivs === undefined ? unknown('no-new-privs', "gVisor's /proc does not tell it; the warden set it") : told('no-new-privs', noNewPrivs),
    told('seccomp', { mode: seccomp, filters: null }),
    unknown('placement', 'gVisor has one place for all programs of a sandbox'),
    limits === '' ? unknown('rlimits', "gVisor's /proc does not tell them; the warden set them") : told('rlimits', { ...parseLimits(limits) }),
  ]
  if (depth === 'short') return short
  return [...short, unknown('filter', 'gVisor shows no filters'), unknown('descriptors', 'gVisor shows them to nobody else')]
}
