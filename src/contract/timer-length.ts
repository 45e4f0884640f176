/** Below this every length is as good: what Node keeps of it is gone a second later. */
const exactMs = 1024
/** Node's timers take no delay of 2 ** 31: it would fire at once. */
const longestMs = 2 ** 30

/**
 * How long the next timer is to be of a wait that may be called off: all of it, or the most of it that is one of few lengths, after which the rest is waited for.
 * Node has a list for each length that was asked for, and of a timer that keeps no process alive it stays until so much time has passed, called off or not.
 */
export function timerLength(restMs: number): number {
  if (restMs <= exactMs) return restMs
  const step = 2 ** (Math.floor(Math.log2(restMs)) - 2)
  return Math.min(Math.floor(restMs / step) * step, longestMs)
}
