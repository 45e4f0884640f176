import { setTimeout } from 'node:timers/promises'
import { CaseFailure, text } from './check.js'
import type { SubjectKept, SubjectProcesses, SubjectSandbox } from './subject.js'

export type Kept = SubjectProcesses

/** Of a subject at a depth where programs are kept. */
export function keptOf({ processes }: SubjectSandbox): Kept {
  if (!processes) throw new CaseFailure('a sandbox must keep processes', 'it has none of this')
  return processes
}

/** All that it prints, from where this view begins. */
export async function outputOf({ output }: SubjectKept): Promise<string> {
  let seen = ''
  for await (const { bytes } of output) seen += text(bytes)
  return seen
}

const patienceMs = 60_000

/** Reads until this is there, and gives back all that was read; where it does not come, that is told too. */
export async function shows({ output }: SubjectKept, wanted: string | RegExp): Promise<string> {
  const reader = output[Symbol.asyncIterator]()
  const late = new AbortController()
  const tooLate = setTimeout(patienceMs, undefined, { signal: late.signal }).catch(() => undefined)
  let seen = ''
  try {
    for (;;) {
      const piece = await Promise.race([reader.next(), tooLate])
      if (!piece || piece.done) throw new CaseFailure(`must show ${String(wanted)}`, seen)
      seen += text(piece.value.bytes)
      if (typeof wanted === 'string' ? seen.includes(wanted) : wanted.test(seen)) return seen
    }
  } finally {
    late.abort()
    void reader.return?.()
  }
}
