/** What a command says of the network: the log that was asked for, what was denied, and what was learnt. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { SandboxError } from '../contract/errors.js'
import type { NetworkRecord } from '../contract/network.js'
import type { Platform, SandboxInfo } from '../contract/platform.js'
import type { CreationOptions } from '../contract/platform-network.js'
import { entryFor } from '../policy/network-rules.js'
import type { NetworkFlags } from './network-flags.js'
import { inShell, ownName, say, toJsonLine } from './print.js'

/** What is told of each; what is beyond is only counted. */
const mostLines = 10
const mostKept = 10_000

const consent = '--learn-network: everything public can be reached, and is written down'

export interface NetworkReport extends Disposable {
  /** What the sandbox is created with. */
  readonly creation: Pick<CreationOptions, 'onRequest'>
  /** From now on. */
  watch(platform: Pick<Platform, 'network'>, info: SandboxInfo): void
  /** Once the sandbox is closed; `first` is called before anything is said. Never throws. */
  tell(told?: { readonly argv?: readonly string[]; readonly first?: () => void }): Promise<void>
}

/** Throws when the log cannot be written, before anything is started for it. */
export function openNetworkReport(flags: NetworkFlags & { readonly quiet?: true; readonly json?: true }): NetworkReport {
  const file = flags.netLog === undefined ? undefined : openLog(flags.netLog)
  const seen = new Seen()
  let written: Promise<void> | undefined
  if (flags.learnNetwork && !flags.json) say(consent)
  return {
    creation: flags.learnNetwork ? { onRequest: () => 'once' } : {},
    watch: (platform, info) => {
      if (info.spec.network === false) return
      written = follow(platform.network.log(info.id), (record) => {
        seen.add(record)
        if (file !== undefined) writeSync(file, toJsonLine(record))
      })
    },
    tell: async ({ argv = [], first } = {}) => {
      await written
      const denied = flags.quiet || flags.json ? [] : seen.deniedLines()
      const lines = [...denied, ...(flags.learnNetwork ? learntLines(seen.entries(), argv) : [])]
      if (lines.length > 0) first?.()
      for (const line of lines) say(line)
    },
    [Symbol.dispose]: () => {
      if (file !== undefined) closeSync(file)
    },
  }
}

function openLog(file: string): number {
  const hint = 'glovebox run --allow example.org --net-log network.ndjson -- …'
  if (file === '' || file === '-') throw new SandboxError('invalid', `--net-log: ${file === '' ? 'must not be empty' : "stdout is the program's"}`, { hint })
  try {
    return openSync(file, 'w', 0o600)
  } catch (error) {
    throw new SandboxError('invalid', `--net-log: ${file} cannot be written (${(error as NodeJS.ErrnoException).code})`, { hint, cause: error })
  }
}

/** A log that cannot be written any more ends; the program is not to suffer. */
async function follow(log: AsyncIterable<NetworkRecord>, take: (record: NetworkRecord) => void): Promise<void> {
  try {
    for await (const record of log) take(record)
  } catch (error) {
    say(`the log of the network is not whole: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** What was attempted, each once, with how often. */
class Seen {
  readonly #denied = new Map<string, { readonly record: NetworkRecord; count: number }>()
  readonly #ports = new Map<string, Set<number>>()

  add(record: NetworkRecord): void {
    if (record.verdict === 'denied') this.#deny(record)
    else if (record.scheme !== 'dns') this.#visit(record)
  }

  deniedLines(): string[] {
    const all = [...this.#denied.values()]
    const lines = all.slice(0, mostLines).map(({ record, count }) => deniedLine(record, count))
    return all.length > mostLines ? [...lines, `denied: ${all.length - mostLines} more; --net-log FILE tells of all`] : lines
  }

  /** The fewest that allow all that was reached or tried to be. */
  entries(): string[] {
    return [...this.#ports]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([host, ports]) => {
        const isWeb = ports.has(80) && ports.has(443)
        const named = [...ports].filter((port) => !isWeb || (port !== 80 && port !== 443)).sort((a, b) => a - b)
        return [...(isWeb ? [host] : []), ...named.map((port) => `${host}:${port}`)]
      })
  }

  #deny(record: NetworkRecord): void {
    const key = `${record.host}:${record.port} ${record.reason}`
    const known = this.#denied.get(key)
    if (known) known.count += 1
    else if (this.#denied.size < mostKept) this.#denied.set(key, { record, count: 1 })
  }

  #visit({ host, port }: NetworkRecord): void {
    const ports = this.#ports.get(host)
    if (ports) ports.add(port)
    else if (this.#ports.size < mostKept) this.#ports.set(host, new Set([port]))
  }
}

function deniedLine({ host, port, scheme, rule, reason }: NetworkRecord, count: number): string {
  const times = count === 1 ? '' : ` (${count} times)`
  const way = rule === '' && scheme !== 'dns' ? `; --allow ${entryFor(host, port)} would allow it` : ''
  return `denied: ${host}:${port}${times}: ${reason}${way}`
}

function learntLines(entries: readonly string[], argv: readonly string[]): string[] {
  if (entries.length === 0) return ['learnt: it needs no network']
  const flags = entries.map((entry) => `--allow ${inShell(entry)}`).join(' ')
  const command = argv.length === 0 ? '' : ` -- ${argv.map(inShell).join(' ')}`
  return [`learnt: ${JSON.stringify({ defaults: { network: { allow: entries } } })}`, `learnt: ${ownName()} run ${flags}${command}`]
}
