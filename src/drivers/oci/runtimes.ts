import type { Tier } from '../../contract/spec-words.js'
import type { Bundle } from './bundles.js'

/** The cheapest first. */
export const runtimeNames = ['crun', 'runc'] as const
export type RuntimeName = (typeof runtimeNames)[number]

export interface RuntimeOrder {
  readonly path: string
  /** Where the runtime sees them. */
  readonly bundle: Pick<Bundle, 'folder' | 'state'>
  readonly cellId: string
  /** How many descriptors it hands on, from 3 up. */
  readonly descriptors: number
  /** Whether it is to leave cgroups alone, though it is root and could change them. */
  readonly leavesGroups?: boolean
}

/** One container runtime: what it is, and how it is told to start a container and be gone. */
export interface Runtime {
  readonly name: RuntimeName
  readonly tier: Tier
  readonly package: string
  /** One that is small may be started in the cell's groups, and then leaves cgroups alone; what a large one needs is not to be the cell's. */
  readonly isSmall: boolean
  /** Whether it copies itself into memory at each start, unless it was started from there. */
  readonly isCopied: boolean
  /** Whether it starts containers in a user namespace with a single id. */
  readonly isRootless?: boolean
  /** Its variables besides PATH, then the program and its words. */
  argv(order: RuntimeOrder): readonly string[]
  /** Of the last line of a start that failed. */
  readonly wordsOf: (line: string) => string | undefined
}

function runDetached({ path, bundle, cellId, descriptors }: RuntimeOrder, ...flags: readonly string[]): readonly string[] {
  const own = [path, '--root', bundle.state, ...flags, 'run', '--detach', '--no-new-keyring']
  return [...own, ...(descriptors === 0 ? [] : ['--preserve-fds', `${descriptors}`]), '--bundle', bundle.folder, cellId]
}

/** It lives for some milliseconds, in which to collect garbage and to spread over processors costs more than it gives: an eighth of its processor time. */
const briefly = ['GOMAXPROCS=1', 'GOGC=off']

/** `time="…" level=error msg="…"`, or plain words. */
function wordsOfRunc(line: string): string | undefined {
  const message = /^time="[^"]*" level=\w+ msg="(.*)"$/.exec(line)?.[1]
  return message === undefined ? undefined : `runc: ${message.replaceAll('\\"', '"').replace(/^runc run failed: /, '')}`
}

/** `2026-11-17T05:39:11.000000Z: …` */
function wordsOfCrun(line: string): string | undefined {
  const message = /^(?:\d{4}-\d\d-\d\dT\S+: )?((?:open|write|mount|create|join|set|clone|invalid|cannot|error|unknown)\b.*)$/.exec(line)?.[1]
  return message === undefined ? undefined : `crun: ${message}`
}

export const runtimes: Readonly<Record<RuntimeName, Runtime>> = {
  runc: {
    name: 'runc',
    tier: 'container',
    package: 'runc',
    isSmall: false,
    isCopied: true,
    isRootless: true,
    // With this it goes on where it cannot enter a group that nobody named.
    argv: (order) => [...briefly, ...runDetached(order, ...(order.leavesGroups ? ['--rootless', 'true'] : []))],
    wordsOf: wordsOfRunc,
  },
  crun: {
    name: 'crun',
    tier: 'container',
    package: 'crun',
    isSmall: true,
    isCopied: false,
    isRootless: true,
    argv: (order) => runDetached(order, '--cgroup-manager=disabled'),
    wordsOf: wordsOfCrun,
  },
}
