import type { CodeResult } from '../contract/code.js'

/** Of one execution, as they are sent. */
const mostBytes = 64 * 2 ** 20
const mostResults = 10_000
/** What is kept of the text of a result that is beyond. */
const mostTextCharacters = 1000

/** Holds all results of one execution together to a bound: beyond it a result is told by the beginning of its text, and at last not at all. */
export class ResultBounds {
  #bytes = 0
  #count = 0

  /** As much of it as may be passed on. */
  hold(result: CodeResult, bytes: number): CodeResult | undefined {
    this.#bytes += bytes
    this.#count += 1
    if (this.#count > mostResults) return undefined
    if (this.#bytes <= mostBytes) return result
    const { isMain, data, cut } = result
    const text = String(data['text/plain']).slice(0, mostTextCharacters)
    return { isMain, data: { 'text/plain': text }, cut: [...new Set([...cut, ...Object.keys(data)])] }
  }
}
