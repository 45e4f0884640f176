/**
 * How we end. Node.js puts its terminals back as it exits, and aborts where one of them is gone because its window was closed. Then there is nothing to
 * put back, and we end as every program does that its terminal leaves: by SIGHUP.
 */
import { isatty } from 'node:tty'

export interface Leaving {
  exit(code: number): never
}

/** Made at the start, when it is known which of the three are terminals. */
export function prepareLeaving(): Leaving {
  const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor))
  return {
    exit(code) {
      if (terminals.some((descriptor) => !isatty(descriptor))) hangUp()
      return process.exit(code)
    },
  }
}

function hangUp(): void {
  process.removeAllListeners('SIGHUP')
  process.kill(process.pid, 'SIGHUP')
  // Only where someone had it ignored before we were started.
  process.kill(process.pid, 'SIGKILL')
}
