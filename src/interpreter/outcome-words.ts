import type { Outcome } from '../contract/run.js'

/** How an interpreter ended, to stand in a sentence. */
export function outcomeInWords(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'exited':
      return `it exited with ${outcome.code}`
    case 'signaled':
      return `it was ended by ${outcome.signal}`
    case 'timed-out':
      return `it used up its ${outcome.by === 'cpu' ? 'processor' : 'wall'} time of ${outcome.limitMs} ms`
    case 'out-of-memory':
      return `it needed more memory than the ${outcome.limitBytes} bytes of limits.memory`
    case 'output-limit':
      return `it printed more than ${outcome.limitBytes} bytes`
    case 'killed':
    case 'not-started':
      return outcome.reason
  }
}
