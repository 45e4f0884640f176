#!/usr/bin/env node
// Compiles the native programs into dist/native/linux-<arch>/. Needs nothing but Node and a C compiler.
//   --only NAME   this program alone (may be repeated)
//   --arch ARCH   x64 or arm64; the machine's own by default
//   --sanitize    with AddressSanitizer and UBSan, dynamically linked, into build/sanitized/linux-<arch>/
//   --force       even what is up to date
//   --beside DIR  also look for headers and libraries in DIR/usr, as an unpacked Debian package has them
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const sourceFolder = join(root, 'warden')

/** What the first process of a zygote's liner executes: nothing of libc is in it. */
const KEEPER = {
  macro: 'KEEPER_IMAGE',
  sources: ['keeper-alone.c', 'keeper-watch.c', 'report.c'],
  flags: [
    ...['-D_GNU_SOURCE', '-O2', '-static', '-s', '-Wl,-z,noexecstack', '-ffreestanding', '-fno-stack-protector', '-fno-tree-loop-distribute-patterns'],
    ...['-fno-asynchronous-unwind-tables', '-nostdlib', '-Wl,--build-id=none', '-Wl,-z,norelro', '-Wl,-z,noseparate-code'],
  ],
}

/**
 * What each program is made of. A `*` stands for whatever else begins so. Another may be a part of it, and is then no file by itself.
 * @typedef {{ sources: string[], flags: string[], libraries: string[], shared?: boolean, embedded?: typeof KEEPER }} Program
 * @type {Record<string, Program>}
 */
const PROGRAMS = {
  warden: {
    sources: [
      'arguments.c',
      'brake.c',
      'brood.c',
      'caps.c',
      'connection.c',
      'cradle.c',
      'cradle-process.c',
      'die.c',
      'doors.c',
      'doors-handover.c',
      'ends.c',
      'engine.c',
      'entry.c',
      'fds.c',
      'feed.c',
      'files.c',
      'files-*.c',
      'frame.c',
      'guests.c',
      'keeper.c',
      'keeper-fork.c',
      'keeper-watch.c',
      'kill.c',
      'kin.c',
      'layers.c',
      'liner.c',
      'lining.c',
      'main.c',
      'mount-flags.c',
      'mux.c',
      'once.c',
      'pages.c',
      'passing.c',
      'place.c',
      'process-table.c',
      'program.c',
      'program-gate.c',
      'queue.c',
      'report.c',
      'routes.c',
      'rules.c',
      'runs.c',
      'self-filter.c',
      'setup.c',
      'sha256.c',
      'spawn.c',
      'standing.c',
      'start.c',
      'tap.c',
      'tar-*.c',
      'terminal.c',
      'told.c',
      'used-ids.c',
    ],
    flags: ['-D_GNU_SOURCE'],
    libraries: [],
  },
  launcher: { sources: ['launcher.c', 'launcher-*.c', 'newest-filter.c'], flags: [], libraries: [] },
  'seccomp-compile': { sources: ['seccomp-compile.c', 'seccomp-*.c'], flags: [], libraries: ['-lseccomp'] },
  inspect: { sources: ['inspect.c', 'newest-filter.c'], flags: [], libraries: [] },
  // A guest of `glovebox verify`.
  prober: { sources: ['prober.c'], flags: ['-D_GNU_SOURCE'], libraries: [] },
  'zygote.so': {
    sources: [
      'brood.c',
      'caps.c',
      'doors.c',
      'doors-handover.c',
      'fds.c',
      'keeper.c',
      'keeper-watch.c',
      'lean.c',
      'liner.c',
      'program-gate.c',
      'report.c',
      'routes.c',
      'rules.c',
      'standing.c',
      'start.c',
      'zygote.c',
      'zygote-memory.c',
      'zygote-python.c',
    ],
    flags: ['-D_GNU_SOURCE', '-fvisibility=hidden', '-ffunction-sections', '-Wl,--gc-sections'],
    libraries: [],
    shared: true,
    embedded: KEEPER,
  },
}

/** @type {Record<string, string>} */
const TRIPLETS = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' }
/** @type {Record<string, string>} */
const COMPILERS = { x64: 'x86_64-linux-gnu-gcc', arm64: 'aarch64-linux-gnu-gcc' }
/** @type {Record<string, string>} */
const PACKAGES = { x64: 'gcc libc6-dev libseccomp-dev', arm64: 'gcc-aarch64-linux-gnu libc6-dev-arm64-cross (and libseccomp-dev:arm64 for seccomp-compile)' }
const COMMON_FLAGS = ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-fno-common', '-fstack-protector-strong']
const RELEASE_FLAGS = ['-O2', '-D_FORTIFY_SOURCE=2', '-static', '-s', '-Wl,-z,noexecstack']
/** What an interpreter of the cell's own loads. */
const SHARED_FLAGS = ['-O2', '-D_FORTIFY_SOURCE=2', '-shared', '-fPIC', '-s', '-Wl,-z,noexecstack', '-Wl,-z,defs']
const SANITIZE_FLAGS = ['-O1', '-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all', '-fno-omit-frame-pointer']

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    arch: { type: 'string', default: process.arch },
    sanitize: { type: 'boolean', default: false },
    force: { type: 'boolean', default: false },
    beside: { type: 'string' },
  },
})

/**
 * @param {string} message
 * @param {string} [hint]
 * @returns {never}
 */
function fail(message, hint) {
  process.stderr.write(`build-native: ${message}\n${hint ? `  try: ${hint}\n` : ''}`)
  process.exit(1)
}

/** @param {string} name */
function programOf(name) {
  const program = PROGRAMS[name]
  return program ?? fail(`unknown program ${name}`, `--only ${Object.keys(PROGRAMS).join(' | ')}`)
}

/**
 * @param {string} name
 * @param {string[]} patterns
 */
function sourcesOf(name, patterns) {
  const present = readdirSync(sourceFolder)
  const found = new Set()
  for (const pattern of patterns) {
    const [start = '', end] = pattern.split('*')
    const matches = end === undefined ? present.filter((file) => file === pattern) : present.filter((file) => file.startsWith(start) && file.endsWith(end))
    if (matches.length === 0 && end === undefined) fail(`${name}: its source warden/${pattern} does not exist`, 'node scripts/build-native.mjs --only NAME')
    for (const file of matches) found.add(join(sourceFolder, file))
  }
  return [...found].sort()
}

/** @param {string} file */
const changedAt = (file) => statSync(file).mtimeMs
const headers = () =>
  readdirSync(sourceFolder)
    .filter((file) => file.endsWith('.h'))
    .map((file) => join(sourceFolder, file))

/**
 * @param {string} target
 * @param {string[]} sources
 */
function isCurrent(target, sources) {
  if (options.force || !existsSync(target)) return false
  const inputs = [...sources, ...headers(), fileURLToPath(import.meta.url)]
  return inputs.every((file) => changedAt(file) <= changedAt(target))
}

/**
 * @param {string} compiler
 * @param {string[]} args
 * @returns {Promise<{ ok: boolean, words: string, missing: boolean }>}
 */
function runCompiler(compiler, args) {
  return new Promise((resolve) => {
    const child = spawn(compiler, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
    let words = ''
    child.stdout.on('data', (chunk) => (words += chunk))
    child.stderr.on('data', (chunk) => (words += chunk))
    child.on('error', (/** @type {NodeJS.ErrnoException} */ error) => resolve({ ok: false, words: error.message, missing: error.code === 'ENOENT' }))
    child.on('close', (code) => resolve({ ok: code === 0, words, missing: false }))
  })
}

/** @param {string[]} args */
async function compile(args) {
  const native = process.arch === options.arch ? [process.env.CC, 'gcc', 'cc'] : []
  for (const compiler of [...native, COMPILERS[options.arch]]) {
    const result = compiler ? await runCompiler(compiler, args) : { ok: false, words: '', missing: true }
    if (!result.missing) return { ...result, compiler }
  }
  return { ok: false, words: `no C compiler for ${options.arch}`, compiler: COMPILERS[options.arch] }
}

/**
 * @param {string} name
 * @param {string} folder
 */
async function build(name, folder) {
  const { sources: patterns, embedded } = programOf(name)
  const sources = sourcesOf(name, patterns)
  const parts = embedded ? sourcesOf(name, embedded.sources) : []
  const target = join(folder, name)
  const now = new Date()
  if (isCurrent(target, [...sources, ...parts])) {
    // So that one comparison with the newest source of all tells that everything is built.
    utimesSync(target, now, now)
    return { name, state: 'up to date' }
  }
  const temporary = `${target}.${process.pid}.tmp`
  const image = `${temporary}.part`
  try {
    const part = embedded ? await compile([...COMMON_FLAGS, ...embedded.flags, '-o', image, ...parts]) : undefined
    const macros = embedded ? [`-D${embedded.macro}="${image}"`] : []
    const result = part?.ok === false ? part : await compile(argumentsOf(name, [...macros, '-o', temporary, ...sources]))
    if (!result.ok) return { name, state: 'failed', words: `${result.compiler}: ${result.words}` }
    renameSync(temporary, target)
    return { name, state: 'built' }
  } finally {
    rmSync(temporary, { force: true })
    rmSync(image, { force: true })
  }
}

/**
 * @param {string} name
 * @param {string[]} own
 */
function argumentsOf(name, own) {
  const { flags, libraries, shared } = programOf(name)
  const beside = options.beside === undefined ? [] : [`-I${options.beside}/usr/include`, `-L${options.beside}/usr/lib/${TRIPLETS[options.arch]}`]
  return [...COMMON_FLAGS, ...(shared ? SHARED_FLAGS : options.sanitize ? SANITIZE_FLAGS : RELEASE_FLAGS), ...flags, ...beside, ...own, ...libraries]
}

if (!(options.arch in COMPILERS)) fail(`unknown architecture ${options.arch}`, '--arch x64 or --arch arm64')
const names = options.only ?? Object.keys(PROGRAMS)

const folder = join(root, options.sanitize ? 'build/sanitized' : 'dist/native', `linux-${options.arch}`)
mkdirSync(folder, { recursive: true })
const results = await Promise.all(names.map((name) => build(name, folder)))
const failed = results.filter((result) => result.state === 'failed')
for (const result of results) if (result.state === 'built') process.stderr.write(`build-native: ${result.name} (${options.arch}) built\n`)
for (const result of failed) process.stderr.write(`build-native: ${result.name} (${options.arch}) does not compile\n${result.words}\n`)
if (failed.length > 0) fail(`${failed.map((result) => result.name).join(', ')} not built`, `install ${PACKAGES[options.arch]}`)
