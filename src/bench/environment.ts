import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import os from 'node:os'
import type { Peer } from './ground.js'
import type { Environment } from './report.js'

/** What Node reads or does before each program that is started with it, whoever's program it is. */
const burdens = ['NODE_EXTRA_CA_CERTS', 'NODE_OPTIONS'] as const

/** Nobody who is measured has what this shell may have set for every Node. Returns what there was. */
export function layDownBurdens(env: NodeJS.ProcessEnv = process.env): readonly string[] {
  const found = burdens.filter((name) => env[name] !== undefined)
  for (const name of found) Reflect.deleteProperty(env, name)
  return found
}

/** What a reader needs to compare two reports; nothing that names the machine. */
export function environmentOf(facts: {
  readonly version: string
  readonly commit?: string
  readonly peers: readonly Peer[]
  readonly without?: readonly string[]
}): Environment {
  return {
    date: new Date().toISOString(),
    glovebox: facts.version,
    ...(facts.commit !== undefined && { commit: facts.commit }),
    kernel: os.release(),
    cpu: cpuModel(),
    cores: os.availableParallelism(),
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    node: process.version,
    python: versionOf('/usr/bin/python3', ['--version']),
    bwrap: versionOf('bwrap', ['--version']),
    user: process.getuid?.() === 0 ? 'root' : 'ordinary',
    ...(facts.without?.length && { without: facts.without.join(' ') }),
    ...Object.fromEntries(facts.peers.map(({ name, version }) => [name, version])),
  }
}

function cpuModel(): string {
  return /model name\s*: (.*)/.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? os.arch()
}

/** The first line that a program says of itself. */
export function versionOf(file: string, args: readonly string[]): string {
  try {
    return (
      execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
        .trim()
        .split('\n')[0] ?? ''
    )
  } catch {
    return 'missing'
  }
}
