import { checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import type { CallOptions, PlatformProcess } from '../contract/platform.js'
import type { AttachOptions, PlatformProcesses, ProcessInfo, ProcessName } from '../contract/processes.js'
import type { ProcessTable } from './process-table.js'

/** The processes of sandboxes, found by their ids. */
export class ProcessesFacet implements PlatformProcesses {
  readonly #find: (id: string) => Promise<{ readonly processes: ProcessTable }>

  constructor(find: (id: string) => Promise<{ readonly processes: ProcessTable }>) {
    this.#find = find
  }

  async list(id: string, options: CallOptions = {}): Promise<readonly ProcessInfo[]> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const found = await (await this.#find(id)).processes.list()
    signal?.throwIfAborted()
    return found
  }

  async attach(id: string, name: ProcessName, options: AttachOptions = {}): Promise<PlatformProcess> {
    const { signal, replay = false, follow = true } = checkCallOptions(options, ['signal', 'replay', 'follow'])
    signal?.throwIfAborted()
    checkName(name)
    for (const [name, value] of Object.entries({ replay, follow }) as [string, unknown][]) {
      if (typeof value !== 'boolean') throw new SandboxError('invalid', `${name}: expected true or false, got ${kindOf(value)}`)
    }
    const { processes } = await this.#find(id)
    return processes.attach(name, { replay, follow })
  }
}

function checkName(name: unknown): void {
  if (typeof name === 'string' ? name !== '' : Number.isInteger(name) && (name as number) > 0) return
  throw new SandboxError('invalid', `process: expected a pid or a tag, got ${typeof name === 'number' ? String(name) : kindOf(name)}`)
}
