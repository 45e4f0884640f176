import type { HostView, Subject, SubjectSandbox } from '../../../src/conformance/index.js'
import type { Probe } from '../../../src/contract/driver.js'
import { openLined } from '../../engine/lined.js'

const absent = (what: string) => (): never => {
  throw new Error(`${what}: a run in a liner is by itself`)
}

/** Each run in a liner of its own, all in one cell. */
export function createLinedSubject(probe: Probe, host: HostView): Subject {
  return {
    name: 'bwrap liners',
    depth: 'engine',
    probe,
    host,
    open: async (spec = {}): Promise<SubjectSandbox> => {
      const { sandbox } = await openLined(spec)
      return {
        run: async (command, options = {}) => {
          const { output, ...rest } = options
          const process = await sandbox.startLined({ command, output: output ?? {}, ...rest }, undefined)
          const said = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
          for await (const { type, bytes } of process.output) said[type].push(bytes)
          const { outcome, usage, truncated } = await process.ended
          return { outcome, usage, truncated, stdout: Buffer.concat(said.stdout), stderr: Buffer.concat(said.stderr) }
        },
        start: (command, options = {}) => sandbox.startLined({ command, ...options }, undefined),
        pause: absent('pause'),
        resume: absent('resume'),
        exchange: absent('exchange'),
        // Those of the cell would be no run's: whoever asks for one is told that there is none.
        files: {} as SubjectSandbox['files'],
        close: () => sandbox.close(),
      }
    },
  }
}
