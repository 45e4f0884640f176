// Fuzzes what is written in C, under AddressSanitizer and UBSan: led by what it covers (libFuzzer of clang) where that can be had, else blindly.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** @typedef {import('./scripted.mjs').Row} Row */
/** @typedef {{ root: string, seconds: number, executions: number, seed: number, isBlind: boolean, say: (line: string) => void }} NativeOrder */

/** In the order of `enum input_kind`. */
export const nativeTargets = [
  'warden-frames',
  'warden-start',
  'warden-stat',
  'warden-rules',
  'warden-told',
  'files-request',
  'files-archive',
  'files-stream',
  'warden-words',
  'launcher-words',
  'launcher-requests',
  'filter-lines',
]

const parts = ['fuzz/tries.c', 'fuzz/inputs.c', 'fuzz/lines.c', 'fuzz/files.c', 'fuzz/stream.c', 'fuzz/words.c', 'fuzz/serve.c', 'fuzz/filter.c']
const tried = [
  'arguments',
  'launcher-options',
  'seccomp-ahead',
  'seccomp-calls',
  'seccomp-conditions',
  'seccomp-ranges',
  'files-bytes',
  'files-frames',
  'files-input',
  'files-request',
  'tar-read',
]
const others = ['tar-pax', 'tar-write', 'frame', 'start', 'used-ids', 'process-table', 'rules']
// Defined as nothing, as files that define it themselves do.
const flags = ['-std=gnu11', '-D_GNU_SOURCE=', '-Wall', '-Wextra', '-Werror', '-O1', '-g', '-fno-sanitize-recover=all']
const packages = ['clang', 'libclang-rt-14-dev']
const mostBytes = 8192

/** @param {string} root @param {{ compiler: string, sanitizers: string, first: string, program: string }} how */
function compile(root, { compiler, sanitizers, first, program }) {
  if (isNewest(root, program)) return { status: 0, stderr: '', error: undefined }
  const sources = [first, ...parts, ...[...tried, ...others].map((name) => `${name}.c`)].map((file) => join(root, 'warden', file))
  return spawnSync(compiler, [...flags, `-fsanitize=${sanitizers}`, '-o', program, ...sources, '-lseccomp'], { encoding: 'utf8' })
}

/** Whether nothing that it is made of was changed since. @param {string} root @param {string} program */
function isNewest(root, program) {
  const made = statSync(program, { throwIfNoEntry: false })?.mtimeMs ?? 0
  const sources = ['warden', 'warden/fuzz'].flatMap((folder) => readdirSync(join(root, folder)).map((file) => join(root, folder, file)))
  return sources.every((file) => statSync(file).mtimeMs < made)
}

/** @param {string} compiler */
function install(compiler) {
  if (spawnSync(compiler, ['--version']).status === 0 || process.getuid?.() !== 0) return
  spawnSync('apt-get', ['install', '-y', '--no-install-recommends', ...packages], { stdio: 'ignore' })
}

/**
 * The programs that try inputs; `guided` only where it can be had.
 * @param {NativeOrder} order @returns {{ blind: string, guided?: string } | undefined}
 */
export function buildNative({ root, isBlind, say }) {
  const folder = join(root, 'build/sanitized', `linux-${process.arch}`)
  mkdirSync(folder, { recursive: true })
  const blind = join(folder, 'fuzz-warden')
  const built = compile(root, { compiler: process.env.CC ?? 'gcc', sanitizers: 'address,undefined', first: 'fuzz/main.c', program: blind })
  if (built.status !== 0) {
    say(
      `the fuzzer does not compile${built.error ? `: ${built.error.message}` : `\n${built.stderr}`}\n  try: apt-get install gcc libc6-dev libasan8 libubsan1 libseccomp-dev`,
    )
    return undefined
  }
  if (isBlind) return { blind }
  install('clang')
  const guided = join(folder, 'fuzz-guided')
  const led = compile(root, { compiler: 'clang', sanitizers: 'fuzzer,address,undefined', first: 'fuzz/guided.c', program: guided })
  if (led.status === 0) return { blind, guided }
  const why = led.error?.message ?? led.stderr.split('\n')[0]
  say(`without coverage, blindly: ${why}\n  try: apt-get install ${packages.join(' ')}`)
  return { blind }
}

/** @param {string} text @param {RegExp} pattern */
const numberIn = (text, pattern) => Number([...text.matchAll(pattern)].at(-1)?.[1] ?? 0)

/** @param {NativeOrder & { name: string, programs: { blind: string, guided?: string } }} order @returns {Row} */
export function fuzzNative(order) {
  const { programs, name, seconds } = order
  const startedAt = Date.now()
  const found = programs.guided === undefined ? tryBlindly(order) : tryGuided(order, programs.guided)
  return { name, kind: programs.guided === undefined ? 'C, blind' : 'C', seconds: Math.min((Date.now() - startedAt) / 1000, seconds * 2), ...found }
}

/** @param {NativeOrder & { name: string, programs: { blind: string } }} order */
function tryBlindly({ programs, name, seconds, seed, say }) {
  const { stdout, stderr, status } = spawnSync(programs.blind, [`${seed}`, `${seconds}`, `${nativeTargets.indexOf(name)}`], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  })
  if (status !== 0) say(`FOUND ${name}:\n${stdout}${stderr.slice(0, 3000)}`)
  return { executions: numberIn(stdout, /(\d+) inputs/g), corpus: 0, coverage: 'not measured', findings: status === 0 ? [] : [`${name}: seed ${seed}`] }
}

/** @param {NativeOrder & { name: string, programs: { blind: string } }} order @param {string} guided */
function tryGuided({ root, programs, name, seconds, executions, seed, say }, guided) {
  const kind = `${nativeTargets.indexOf(name)}`
  const corpus = mkdtempSync(join(tmpdir(), 'glovebox-corpus-'))
  const found = join(root, 'build/fuzz/found', name)
  mkdirSync(found, { recursive: true })
  try {
    spawnSync(programs.blind, ['--seeds', kind, corpus])
    for (const [index, bytes] of keptOf(root, name).entries()) writeFileSync(join(corpus, `kept-${index}`), bytes)
    const bounds = [
      `-max_total_time=${seconds}`,
      `-runs=${executions}`,
      `-seed=${(seed % 2 ** 31) + 1}`,
      `-max_len=${mostBytes}`,
      '-timeout=10',
      '-rss_limit_mb=1024',
    ]
    const env = { ...process.env, GLOVEBOX_FUZZ_KIND: kind }
    const ran = spawnSync(guided, [...bounds, '-print_final_stats=1', `-artifact_prefix=${found}/`, corpus], { encoding: 'utf8', env, maxBuffer: 1 << 28 })
    if (ran.status !== 0) say(`FOUND ${name}: ${found}\n${ran.stderr.slice(-4000)}`)
    return {
      executions: numberIn(ran.stderr, /number_of_executed_units: (\d+)/g),
      corpus: readdirSync(corpus).length,
      coverage: `${numberIn(ran.stderr, /cov: (\d+)/g)} edges`,
      findings: ran.status === 0 ? [] : [`${found}: ${/SUMMARY.*|promise broken.*/.exec(ran.stderr)?.[0] ?? 'ended'}`],
    }
  } finally {
    rmSync(corpus, { recursive: true, force: true })
  }
}

/** @param {string} root @param {string} name @returns {Uint8Array[]} */
function keptOf(root, name) {
  try {
    return readdirSync(join(root, 'test/fuzz/kept', name)).map((file) => readFileSync(join(root, 'test/fuzz/kept', name, file)))
  } catch {
    // None yet.
    return []
  }
}
