#!/usr/bin/env node
// Fuzzes the warden's parsers for a bounded time. --seconds N (20), --seed N (random; printed, so that a finding can be had again).
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const { values } = parseArgs({ options: { seconds: { type: 'string', default: '20' }, seed: { type: 'string', default: `${randomInt(2 ** 40)}` } } })
for (const [name, value] of Object.entries(values)) {
  if (/^\d{1,15}$/.test(value)) continue
  process.stderr.write(`fuzz: --${name} is no number: ${value}\n`)
  process.exit(2)
}

const sources = [
  'fuzz/main.c',
  'fuzz/inputs.c',
  'fuzz/files.c',
  'fuzz/stream.c',
  'files-bytes.c',
  'files-frames.c',
  'files-input.c',
  'files-request.c',
  'tar-read.c',
  'tar-pax.c',
  'tar-write.c',
  'frame.c',
  'start.c',
  'used-ids.c',
  'process-table.c',
  'rules.c',
].map((file) => join(root, 'warden', file))
const folder = join(root, 'build/sanitized', `linux-${process.arch}`)
const program = join(folder, 'fuzz-warden')
mkdirSync(folder, { recursive: true })

const flags = ['-std=gnu11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror', '-O1', '-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all']
const built = spawnSync(process.env.CC ?? 'gcc', [...flags, '-o', program, ...sources], { stdio: 'inherit' })
if (built.status !== 0) {
  process.stderr.write(`fuzz: the fuzzer does not compile${built.error ? `: ${built.error.message}` : ''}\n  try: install gcc libc6-dev libasan and libubsan\n`)
  process.exit(2)
}
const ran = spawnSync(program, [values.seed, values.seconds], { stdio: 'inherit' })
if (ran.status !== 0) process.stderr.write(`fuzz: again with --seed ${values.seed}, or: ${program} --reproduce …\n`)
process.exit(ran.status ?? 1)
