import { isGone, readProc } from './proc-files.js'

/** Of a thread that still runs code of its own: no zombie, and not on its way out. */
export interface ThreadLife {
  /** Since the machine started, in the kernel's ticks: tells one from another that was given its number later. */
  readonly startedAt: string
}

// Of include/linux/sched.h; whoever has it never returns to its program, and some of what is told of it is not true any more.
const isExiting = 0x4

/** Undefined when it has ended or is about to. A process whose first thread has ended may have others that live: each is asked for itself. */
export function lifeOf(thread: number): ThreadLife | undefined {
  try {
    return parseLife(readProc(`${thread}/task/${thread}`, 'stat'))
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

/** `7 (any (name) S 1 …`: what follows the name has blanks between. */
export function parseLife(stat: string): ThreadLife | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state = '', flags, startedAt] = [fields[0], fields[6], fields[19]]
  if (flags === undefined || startedAt === undefined) throw new Error('the kernel tells no flags of a thread')
  return 'ZXx'.includes(state) || (Number(flags) & isExiting) !== 0 ? undefined : { startedAt }
}
