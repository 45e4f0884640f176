import { spawn } from 'node:child_process'

export interface PlainResult {
  readonly stdout: string
  readonly code: number | null
  readonly ms: number
  /** True when it had to be stopped by us. */
  readonly stopped: boolean
  /** Why it did not even start. */
  readonly missing?: string
}

interface PlainOptions {
  readonly stopAfterMs: number
  readonly path: string
  readonly signal: AbortSignal
}

/** Runs a program with no protection at all: what a sandbox is to be compared with. It is killed after `stopAfterMs`. */
export function spawnPlainly(argv: readonly string[], options: PlainOptions): Promise<PlainResult> {
  const [program = '', ...args] = argv
  const startedAt = performance.now()
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'], env: { PATH: options.path }, signal: options.signal, killSignal: 'SIGKILL' })
    const chunks: Buffer[] = []
    let stopped = false
    const timer = setTimeout(() => {
      stopped = true
      child.kill('SIGKILL')
    }, options.stopAfterMs)
    const settle = (rest: { readonly code: number | null; readonly missing?: string }): void => {
      clearTimeout(timer)
      resolve({ stdout: Buffer.concat(chunks).toString(), ms: performance.now() - startedAt, stopped, ...rest })
    }
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.once('error', (error) => settle({ code: null, missing: error.message }))
    child.once('close', (code) => settle({ code }))
  })
}
