#!/usr/bin/env node
// Compiles the native programs into dist/native/linux-<arch>/. Needs nothing but Node and a C compiler.
//   --only NAME   this program alone (may be repeated)
//   --arch ARCH   x64 or arm64; the machine's own by default
//   --sanitize    with AddressSanitizer and UBSan, dynamically linked, into build/sanitized/linux-<arch>/
//   --force       even what is up to date
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const sourceFolder = join(root, 'warden')

/** What each program is made of. A `*` stands for whatever else begins so. */
const PROGRAMS = {
  warden: {
    sources: [
      'arguments.c',
      'caps.c',
      'die.c',
      'engine.c',
      'fds.c',
      'feed.c',
      'frame.c',
      'keeper.c',
      'kill.c',
      'main.c',
      'mux.c',
      'process-table.c',
      'program.c',
      'queue.c',
      'report.c',
      'runs.c',
      'self-filter.c',
      'setup.c',
      'spawn.c',
      'start.c',
      'tap.c',
      'used-ids.c',
    ],
    flags: ['-D_GNU_SOURCE'],
    libraries: [],
  },
  launcher: { sources: ['launcher.c', 'launcher-*.c'], flags: [], libraries: [] },
  'seccomp-compile': { sources: ['seccomp-compile.c', 'seccomp-*.c'], flags: [], libraries: ['-lseccomp'] },
}

const COMPILERS = { x64: 'x86_64-linux-gnu-gcc', arm64: 'aarch64-linux-gnu-gcc' }
const PACKAGES = { x64: 'gcc libc6-dev libseccomp-dev', arm64: 'gcc-aarch64-linux-gnu libc6-dev-arm64-cross (and libseccomp-dev:arm64 for seccomp-compile)' }
const COMMON_FLAGS = ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-fno-common', '-fstack-protector-strong']
const RELEASE_FLAGS = ['-O2', '-D_FORTIFY_SOURCE=2', '-static', '-s', '-Wl,-z,noexecstack']
const SANITIZE_FLAGS = ['-O1', '-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all', '-fno-omit-frame-pointer']

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    arch: { type: 'string', default: process.arch },
    sanitize: { type: 'boolean', default: false },
    force: { type: 'boolean', default: false },
  },
})

function fail(message, hint) {
  process.stderr.write(`build-native: ${message}\n${hint ? `  try: ${hint}\n` : ''}`)
  process.exit(1)
}

function sourcesOf(name) {
  const present = readdirSync(sourceFolder)
  const found = new Set()
  for (const pattern of PROGRAMS[name].sources) {
    const [start, end] = pattern.split('*')
    const matches = end === undefined ? present.filter((file) => file === pattern) : present.filter((file) => file.startsWith(start) && file.endsWith(end))
    if (matches.length === 0 && end === undefined) fail(`${name}: its source warden/${pattern} does not exist`, 'node scripts/build-native.mjs --only NAME')
    for (const file of matches) found.add(join(sourceFolder, file))
  }
  return [...found].sort()
}

const changedAt = (file) => statSync(file).mtimeMs
const headers = () =>
  readdirSync(sourceFolder)
    .filter((file) => file.endsWith('.h'))
    .map((file) => join(sourceFolder, file))

function isCurrent(target, sources) {
  if (options.force || !existsSync(target)) return false
  const inputs = [...sources, ...headers(), fileURLToPath(import.meta.url)]
  return inputs.every((file) => changedAt(file) <= changedAt(target))
}

function runCompiler(compiler, args) {
  return new Promise((resolve) => {
    const child = spawn(compiler, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
    let words = ''
    child.stdout.on('data', (chunk) => (words += chunk))
    child.stderr.on('data', (chunk) => (words += chunk))
    child.on('error', (error) => resolve({ ok: false, words: error.message, missing: error.code === 'ENOENT' }))
    child.on('close', (code) => resolve({ ok: code === 0, words, missing: false }))
  })
}

async function compile(args) {
  const ownName = process.arch === options.arch ? ['gcc', 'cc'] : []
  for (const compiler of [...(process.env.CC && ownName.length ? [process.env.CC] : []), COMPILERS[options.arch], ...ownName]) {
    const result = await runCompiler(compiler, args)
    if (!result.missing) return { ...result, compiler }
  }
  return { ok: false, words: `no C compiler for ${options.arch}`, compiler: COMPILERS[options.arch] }
}

async function build(name, folder) {
  const { flags, libraries } = PROGRAMS[name]
  const sources = sourcesOf(name)
  const target = join(folder, name)
  if (isCurrent(target, sources)) return { name, state: 'up to date' }
  const temporary = `${target}.${process.pid}.tmp`
  const args = [...COMMON_FLAGS, ...(options.sanitize ? SANITIZE_FLAGS : RELEASE_FLAGS), ...flags, '-o', temporary, ...sources, ...libraries]
  const result = await compile(args)
  if (!result.ok) {
    rmSync(temporary, { force: true })
    return { name, state: 'failed', words: `${result.compiler}: ${result.words}` }
  }
  renameSync(temporary, target)
  return { name, state: 'built' }
}

if (!(options.arch in COMPILERS)) fail(`unknown architecture ${options.arch}`, '--arch x64 or --arch arm64')
const names = options.only ?? Object.keys(PROGRAMS)
for (const name of names) if (!(name in PROGRAMS)) fail(`unknown program ${name}`, `--only ${Object.keys(PROGRAMS).join(' | ')}`)

const folder = join(root, options.sanitize ? 'build/sanitized' : 'dist/native', `linux-${options.arch}`)
mkdirSync(folder, { recursive: true })
const results = await Promise.all(names.map((name) => build(name, folder)))
const failed = results.filter((result) => result.state === 'failed')
for (const result of results) if (result.state === 'built') process.stderr.write(`build-native: ${result.name} (${options.arch}) built\n`)
for (const result of failed) process.stderr.write(`build-native: ${result.name} (${options.arch}) does not compile\n${result.words}\n`)
if (failed.length > 0) fail(`${failed.map((result) => result.name).join(', ')} not built`, `install ${PACKAGES[options.arch]}`)
