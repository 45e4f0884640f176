import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { nativeProgram } from '../../src/sys/native.js'

/** Runs a script of this folder in a Node of its own and gives what it printed. Rejects when that has not ended after a while. */
export async function runAlone(script: string, args: readonly string[] = []): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'glovebox-test-'))
  try {
    const outfile = join(folder, 'script.mjs')
    const entry = fileURLToPath(new URL(script, import.meta.url))
    await build({ entryPoints: [entry], outfile, bundle: true, platform: 'node', format: 'esm', target: 'node20', logLevel: 'error' })
    const child = spawn(process.execPath, [outfile, nativeProgram('warden'), ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: 100_000,
      killSignal: 'SIGKILL',
    })
    const printed: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => printed.push(chunk))
    const ending = await new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)))
    if (ending !== 0) throw new Error(`${script} ended with ${String(ending)}`)
    return Buffer.concat(printed).toString()
  } finally {
    await rm(folder, { recursive: true })
  }
}
