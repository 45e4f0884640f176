import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

export interface Script {
  readonly child: ChildProcess
  /** The first line it prints. */
  readonly firstLine: Promise<string>
  /** Its stdout, its last words and how it ended. */
  readonly ended: Promise<{ readonly stdout: string; readonly stderr: string; readonly code: number | null; readonly signal: NodeJS.Signals | null }>
}

/** Our own code finds its package by where it lies, which must stay so in a bundle elsewhere. */
const home = JSON.stringify(new URL('../../src/sys/native.ts', import.meta.url).href)

export interface Bundled {
  /** Of the one file that it is now. */
  readonly path: string
  [Symbol.dispose](): void
}

/** For a program that is started often. */
export async function bundleScript(program: URL): Promise<Bundled> {
  const folder = mkdtempSync(join(tmpdir(), 'gbx-script-'))
  // Whoever a wrapper makes of us may read it.
  chmodSync(folder, 0o755)
  const outfile = join(folder, 'script.mjs')
  await build({
    entryPoints: [fileURLToPath(program)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    define: { 'import.meta.url': home },
    logLevel: 'error',
  })
  return { path: outfile, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}

/** Starts a TypeScript program in a node process of its own. */
export async function startScript(program: URL, argv: readonly string[] = [], wrapper: readonly string[] = []): Promise<Script> {
  const bundled = await bundleScript(program)
  const [file, ...rest] = [...wrapper, process.execPath, bundled.path, ...argv] as [string, ...string[]]
  const child = spawn(file, rest, { stdio: ['pipe', 'pipe', 'pipe'] })
  const closed = new Promise<[number | null, NodeJS.Signals | null]>((resolve) => child.once('close', (code, signal) => resolve([code, signal])))
  const ended = (async () => {
    const [stdout, stderr, [code, signal]] = await Promise.all([text(child.stdout), text(child.stderr), closed])
    bundled[Symbol.dispose]()
    return { stdout, stderr, code, signal }
  })()
  return { child, firstLine: lineOf(child.stdout), ended }
}

async function lineOf(stream: Readable): Promise<string> {
  let words = ''
  await new Promise<void>((resolve) => {
    stream.on('data', (chunk: Buffer) => {
      words += chunk.toString('utf8')
      if (words.includes('\n')) resolve()
    })
    stream.once('end', resolve)
  })
  return words.split('\n')[0] as string
}
