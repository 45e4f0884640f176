import type { Command, Usage } from '../contract/run.js'
import type { SpecInput } from '../contract/spec.js'
import { ensure, ensureExited } from './check.js'
import { pause } from './guest.js'
import { ensureLeavesNothing } from './leftovers.js'
import type { Subject, SubjectResult, SubjectRunOptions, SubjectSandbox } from './subject.js'

/** One attack on a limit, and what must become of it. */
export interface Assault {
  readonly spec: SpecInput
  readonly command: Command
  readonly options?: SubjectRunOptions
  /** Throws when the ending is not the right one; resolves to what was seen. */
  judge(result: SubjectResult, sandbox: SubjectSandbox): Promise<string> | string
}

const neighbourMs = 1000
const closeMs = 2000
/** What the attack may have within its limit, and what else goes on on the machine may take meanwhile. */
const slackBytes = 768 * 2 ** 20

/**
 * Carries it out beside an unconcerned sandbox, which must go on answering, while the host's memory stays what it was; and whatever the
 * attack left running, closing is quick and complete.
 */
export async function withstand(subject: Subject, assault: Assault): Promise<string> {
  let seen = ''
  await ensureLeavesNothing(subject, async () => {
    const neighbour = await subject.open()
    try {
      seen = await assail(subject, assault, neighbour)
    } finally {
      await neighbour.close()
    }
  })
  return seen
}

async function assail(subject: Subject, assault: Assault, neighbour: SubjectSandbox): Promise<string> {
  const availableBefore = await subject.host.availableMemoryBytes()
  const sandbox = await subject.open(assault.spec)
  let seen: string
  let watch: Watch
  try {
    const running = sandbox.run(assault.command, assault.options)
    watch = await watchWhile(subject, neighbour, running)
    seen = await assault.judge(await running, sandbox)
  } finally {
    const closing = performance.now()
    await sandbox.close()
    const took = performance.now() - closing
    ensure(took < closeMs, `closing must take less than ${closeMs} ms`, `${Math.round(took)} ms`)
  }
  ensure(watch.longestMs < neighbourMs, `a neighbour's true must take less than ${neighbourMs} ms all the time`, watch)
  const lostBytes = availableBefore - watch.leastAvailableBytes
  ensure(lostBytes < slackBytes, 'the host must keep its memory', `${lostBytes} bytes less were available`)
  return `${seen}; a neighbour answered ${watch.count} times within ${Math.round(watch.longestMs)} ms`
}

interface Watch {
  readonly count: number
  readonly longestMs: number
  readonly leastAvailableBytes: number
}

async function watchWhile(subject: Subject, neighbour: SubjectSandbox, attack: Promise<unknown>): Promise<Watch> {
  const over = attack.then(
    () => true,
    () => true,
  )
  let [count, longestMs, leastAvailableBytes] = [0, 0, Number.POSITIVE_INFINITY]
  do {
    const asked = performance.now()
    ensureExited(await neighbour.run(['true']))
    longestMs = Math.max(longestMs, performance.now() - asked)
    leastAvailableBytes = Math.min(leastAvailableBytes, await subject.host.availableMemoryBytes())
    count += 1
  } while (!(await Promise.race([over, pause(50).then(() => false)])))
  return { count, longestMs, leastAvailableBytes }
}

export function cpuMsOf({ cpuUserMs, cpuSystemMs }: Usage): number {
  return cpuUserMs + cpuSystemMs
}
