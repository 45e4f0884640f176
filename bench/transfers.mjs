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
import { atLeast, atMost, ratioOf, sampleInterleaved } from '../dist/bench/index.js'
import { Sandbox } from '../dist/index.js'

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
export const ways = {
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

async function growthOf(way) {
  const { stdout } = await execute(process.execPath, [fileURLToPath(new URL('./transfers-memory.mjs', import.meta.url)), way])
  return Number(stdout)
}

/** Of one way: how long it took both, and what must hold. */
async function measure(name, { way, plain, sandbox, rounds, signal }) {
  const names = { beside: `${name}, plain pipe`, ours: `${name}, glovebox` }
  const subjects = [
    { name: names.beside, run: plain },
    { name: names.ours, run: () => ways[way](sandbox) },
  ]
  const { rows, missing } = await sampleInterleaved(subjects, { rounds, warmups: 1, signal })
  const ratio = ratioOf({ rows, ...names })
  return {
    rows,
    missing,
    goals: [
      atLeast(`${name}: at least 0.5 × as fast as a plain pipe`, typeof ratio === 'number' ? 1 / ratio : ratio, 0.5),
      // The next number below 64, so that 64 itself is too much.
      atMost(`${name}: the engine grows by less than 64 MiB`, await growthOf(way), 64 - Number.EPSILON * 64),
    ],
  }
}

export const transfers = {
  name: 'transfers',
  title: 'Transfers: a GiB out of a running sandbox and into it',
  isLong: true,
  async measure({ platform, rounds, signal }) {
    const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir(), 'glovebox-bench-'))
    const outside = join(folder, 'transferred')
    try {
      const sandbox = await createSubject(platform)
      try {
        const both = { sandbox, rounds: Math.ceil(rounds / 15), signal }
        const parts = [
          await measure('1 GiB of output', { way: 'output', plain: () => readPlainly(print), ...both }),
          await measure('1 GiB into a file', { way: 'upload', plain: () => writePlainly(outside), ...both }),
          await measure('1 GiB from a file', { way: 'download', plain: () => readPlainly(['/bin/cat', outside]), ...both }),
        ]
        const of = (kind) => parts.flatMap((part) => part[kind])
        return { rows: of('rows'), figures: [], missing: of('missing'), goals: of('goals') }
      } finally {
        await sandbox.close()
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
}
