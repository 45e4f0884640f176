import { setTimeout as sleep } from 'node:timers/promises'
import type { Language } from '../contract/code.js'
import type { Platform } from '../contract/platform.js'
import type { Ground } from './ground.js'

export type Fresh = 'cell' | 'liner'

interface PoolStatus {
  readonly total: number
  readonly available: number
}

/** What is used here of the library's pools. */
interface OpenPool {
  run(command: string[], options?: { readonly receipt: boolean }): PromiseLike<{ readonly stdout: string; readonly stderr: string }>
  code(source: string, options: { readonly language: Language }): PromiseLike<{ readonly text: string | undefined }>
  status(): PoolStatus | Promise<PoolStatus>
  close(): Promise<unknown>
}

export interface PoolDoor {
  create(options: WarmPoolOptions & { readonly platform: Platform; readonly max: number }): Promise<OpenPool>
}

export interface WarmPool extends AsyncDisposable {
  run(command: string[], options?: { readonly receipt: boolean }): Promise<string>
  code(source: string, language: Language): Promise<string | undefined>
  /** Resolves when as many wait as did at first, and none is being made or closed any more. */
  settle(): Promise<void>
}

interface WarmPoolOptions {
  readonly fresh: Fresh
  readonly template: string
  readonly size: number
  readonly imports?: string[]
  readonly language?: Language
}

export const noPools = 'pools are not there yet'
const settlePauseMs = 2
const settlePatienceMs = 30_000

/** A pool with everything in it ready; undefined where the library has none. */
export async function openWarmPool({ SandboxPool, platform }: Ground, options: WarmPoolOptions): Promise<WarmPool | undefined> {
  if (SandboxPool === undefined) return undefined
  const pool = await SandboxPool.create({ ...options, platform, max: options.size * 2 })
  const settle = async (): Promise<void> => {
    const until = performance.now() + settlePatienceMs
    for (let status = await pool.status(); status.available < options.size || status.total > status.available; status = await pool.status()) {
      if (performance.now() > until) throw new Error(`the pool did not fill up to ${options.size} within ${settlePatienceMs / 1000} s`)
      await sleep(settlePauseMs)
    }
  }
  try {
    await settle()
  } catch (error) {
    await pool.close()
    throw error
  }
  return {
    run: async (command, given) => (await pool.run(command, given)).stdout,
    code: async (source, language) => (await pool.code(source, { language })).text,
    settle,
    [Symbol.asyncDispose]: async () => {
      await pool.close()
    },
  }
}
