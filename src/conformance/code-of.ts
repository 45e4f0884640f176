import type { CodeEnding, CodeEvent, CodeRequest, CodeResult } from '../contract/code.js'
import { CaseFailure, text } from './check.js'
import type { SubjectCode, SubjectSandbox } from './subject.js'

/** Of a subject at a depth where code is run. */
export function codeOf({ code }: SubjectSandbox): SubjectCode {
  if (!code) throw new CaseFailure('a sandbox must run code', 'it has none of this')
  return code
}

/** One execution, read to its end. */
export interface Seen {
  readonly ending: CodeEnding
  readonly stdout: string
  readonly stderr: string
  readonly results: readonly CodeResult[]
  /** The text of the main value. */
  readonly value: unknown
  /** What came, in its order: texts as they are, results as their text in brackets. */
  readonly order: string
}

export interface SeeOptions {
  readonly signal?: AbortSignal
  readonly onEvent?: (event: CodeEvent, answer: (line: string | null) => Promise<void>) => unknown
}

export async function see(code: SubjectCode, request: CodeRequest, { signal, onEvent }: SeeOptions = {}): Promise<Seen> {
  const execution = await code.execute(request, signal ? { signal } : {})
  const texts = { stdout: '', stderr: '' }
  const results: CodeResult[] = []
  let order = ''
  for await (const event of execution.events) {
    await onEvent?.(event, (line) => execution.answer(line))
    if (event.type === 'result') {
      results.push(event.result)
      order += `[${String(event.result.data['text/plain'])}]`
    } else if (event.type !== 'ask') {
      texts[event.type] += text(event.bytes)
      order += text(event.bytes)
    }
  }
  const ending = await execution.ended
  return { ending, ...texts, results, value: results.find(({ isMain }) => isMain)?.data['text/plain'], order }
}
