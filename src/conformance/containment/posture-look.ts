import { ensure } from '../check.js'
import { python, until, withSandbox } from '../guest.js'
import type { Subject, SubjectSandbox, ThreadFacts } from '../subject.js'

/** Three threads and a child, all of which can be found from outside by the marker, and which end by themselves. */
const dwell = `import os, sys, threading, time
for _ in range(2): threading.Thread(target=time.sleep, args=(35,), daemon=True).start()
if os.fork() == 0: time.sleep(35); os._exit(0)
time.sleep(35)`

const threads = 4

export interface Dwelling {
  readonly facts: readonly ThreadFacts[]
  readonly marker: string
  readonly sandbox: SubjectSandbox
  readonly look: () => Promise<readonly ThreadFacts[]>
}

/** A program with threads and a child, and what the host's kernel tells of each of them. */
export async function withDwelling<T>(
  subject: Subject,
  use: (dwelling: Dwelling) => Promise<T>,
  before: (sandbox: SubjectSandbox) => Promise<void> = () => Promise.resolve(),
): Promise<T> {
  return withSandbox(subject, async (sandbox) => {
    await before(sandbox)
    const marker = `gbx-look-${[...crypto.getRandomValues(new Uint32Array(3))].join('')}`
    const controller = new AbortController()
    const run = sandbox.run(python(dwell, marker), { signal: controller.signal })
    run.catch(() => undefined)
    const look = (): Promise<readonly ThreadFacts[]> => subject.host.look({ marker })
    try {
      // The threads of the child are made after its parent's.
      const isThere = await until(async () => (await look()).length >= threads, 10_000)
      const facts = await look()
      ensure(
        isThere,
        `the host must see ${threads} threads of the program`,
        facts.map(({ pid, tid, command }) => ({ pid, tid, command })),
      )
      return await use({ facts, marker, sandbox, look })
    } finally {
      controller.abort(new Error('it was looked at'))
      await run.catch(() => undefined)
    }
  })
}
