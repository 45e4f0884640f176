import { createHash } from 'node:crypto'
import { nativeProgram } from '../native.js'
import { capture } from '../spawn.js'
import { readProc } from './proc-files.js'
import { parseStatus } from './process-status.js'

/** `hash` is null for a process without a filter. */
export type FilterReading = { readonly hash: string | null } | { readonly unreadable: string }

export const filterTimeoutMs = 30_000

/**
 * SHA-256 of the filter that a process loaded last. The process is stopped for a moment and does not notice. What reads it is started at once and
 * waits for the pid, so that a process can be named that is still on its way; undefined when there will be none.
 */
export async function readNewestFilter(pid: Promise<number | undefined>): Promise<FilterReading> {
  const why = whyUnreadable()
  if (why !== undefined) return { unreadable: why }
  try {
    const input = pid.then((number) => Buffer.from(number === undefined ? '' : `${number}`))
    const { code, stdout, stderr } = await capture([nativeProgram('inspect')], { input, timeoutMs: filterTimeoutMs })
    if (code !== 0) return { unreadable: stderr.trim() || `inspect ended with ${code}` }
    return { hash: stdout.length === 0 ? null : createHash('sha256').update(stdout).digest('hex') }
  } catch (error) {
    return { unreadable: (error as Error).message }
  }
}

const sysAdmin = 1n << 21n

/** Undefined when nothing speaks against it. */
export function whyUnreadable(): string | undefined {
  const mayAsk = (BigInt(`0x${parseStatus(readProc('self', 'status')).capabilities.effective}`) & sysAdmin) !== 0n
  return mayAsk ? undefined : 'only root may read the filter of a process'
}
