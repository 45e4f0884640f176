/**
 * What a GiB costs on its way out of a sandbox and into it, beside the same through a plain pipe: printed by a program, written to a file, read from one.
 * Files lie in memory on both sides. How much this process grows meanwhile is measured in processes of their own (transfers-memory.mjs).
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Sandbox } from '../dist/index.js'
import { sampleInterleaved, withRatios } from './sampling.mjs'

const execute = promisify(execFile)
export const transferredBytes = 2 ** 30
const piece = Buffer.alloc(2 ** 20)
const inside = '/workspace/transferred'
const print = ['/usr/bin/head', '-c', String(transferredBytes), '/dev/zero']

/** Room for the file, and as many processors as a plain program has. */
const limits = { disk: '1200MiB', memory: '2GiB', cpus: os.cpus().length }

export function createSubject(platform) {
  return Sandbox.create({ platform, limits })
}

async function count(chunks) {
  let received = 0
  for await (const chunk of chunks) received += chunk.length
  if (received !== transferredBytes) throw new Error(`${received} bytes arrived instead of ${transferredBytes}`)
}

async function* pieces() {
  for (let sent = 0; sent < transferredBytes; sent += piece.length) yield piece
}

async function* printed(run) {
  for await (const event of run) if (event.type === 'stdout') yield event.bytes
}

/** The three ways, for a sandbox whose file is there once `upload` was called. */
export const transfers = {
  output: (sandbox) => count(printed(sandbox.run(print))),
  upload: (sandbox) => sandbox.files.write(inside, pieces()),
  download: async (sandbox) => count(await sandbox.files.stream(inside)),
}

async function readPlainly([file, ...args]) {
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const closed = once(child, 'close')
  await count(child.stdout)
  await closed
}

async function writePlainly(path) {
  const child = spawn('/bin/sh', ['-c', 'exec cat > "$0"', path], { stdio: ['pipe', 'ignore', 'ignore'] })
  const closed = once(child, 'close')
  for await (const each of pieces()) if (!child.stdin.write(each)) await once(child.stdin, 'drain')
  child.stdin.end()
  await closed
}

async function compare(plain, sandboxed, rounds) {
  const rows = withRatios(await sampleInterleaved([plain, sandboxed], { rounds, warmups: 1 }))
  return { rows, speed: 1 / rows[1].ratio }
}

async function growthOf(way) {
  const { stdout } = await execute(process.execPath, [fileURLToPath(new URL('./transfers-memory.mjs', import.meta.url)), way])
  return Number(stdout)
}

/** Of one way: how long it took both, and what must hold. */
async function measure(name, { way, plain, sandbox, rounds }) {
  const { rows, speed } = await compare({ name: `${name}, plain pipe`, run: plain }, { name: `${name}, glovebox`, run: () => transfers[way](sandbox) }, rounds)
  const growth = await growthOf(way)
  return {
    rows,
    goals: [
      { text: `${name}: at least 0.5 × as fast as a plain pipe`, measured: speed, met: speed >= 0.5 },
      { text: `${name}: the engine grows by less than 64 MiB`, measured: growth, met: growth < 64 },
    ],
  }
}

export async function measureTransfers(platform, rounds) {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir(), 'glovebox-bench-'))
  const outside = join(folder, 'transferred')
  const sandbox = await createSubject(platform)
  try {
    const both = { sandbox, rounds }
    const parts = [
      await measure('1 GiB of output', { way: 'output', plain: () => readPlainly(print), ...both }),
      await measure('1 GiB into a file', { way: 'upload', plain: () => writePlainly(outside), ...both }),
      await measure('1 GiB from a file', { way: 'download', plain: () => readPlainly(['/bin/cat', outside]), ...both }),
    ]
    return {
      title: 'Transfers: a GiB out of a running sandbox and into it',
      rows: parts.flatMap((part) => part.rows),
      goals: parts.flatMap((part) => part.goals),
    }
  } finally {
    await sandbox.close()
    rmSync(folder, { recursive: true })
  }
}
