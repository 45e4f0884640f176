/** Packages for what runs in a sandbox, brought in by its own pip or npm, by its own network, and by nothing else. */
import { checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import type { NetworkRecord } from '../contract/network.js'
import { kindOf } from '../contract/plain-object.js'
import type { CallOptions } from '../contract/platform.js'
import type { Sandbox } from './sandbox.js'

const managers = ['pip', 'npm'] as const

export interface InstallOptions extends CallOptions {
  /** `pip` unless given. With npm packages go to `node_modules` where runs start, with pip to the user's own site. */
  readonly manager?: (typeof managers)[number]
  /** Where packages come from; that which the manager itself is set to unless given. Its host has to be allowed by the sandbox's network, and so have those that it refers to. */
  readonly index?: string
  readonly timeout?: number | string
  /** Told each line that the manager prints. What it throws calls the installation off. */
  readonly onProgress?: (line: string) => void
}

interface Manager {
  /** How an index is told. */
  readonly indexFlag: string
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** What is said where there is none. */
  readonly absent: RegExp
}

const known: Readonly<Record<(typeof managers)[number], Manager>> = {
  pip: {
    indexFlag: '--index-url',
    argv: ['python3', '-m', 'pip', 'install', '--user', '--no-input', '--no-cache-dir', '--progress-bar', 'off'],
    // The root belongs to a distribution, which is not touched: it is read-only, and packages go to the user's home.
    env: { PIP_BREAK_SYSTEM_PACKAGES: '1', PIP_DISABLE_PIP_VERSION_CHECK: '1', PIP_RETRIES: '1' },
    absent: /No module named pip/,
  },
  npm: {
    indexFlag: '--registry',
    argv: ['npm', 'install', '--no-audit', '--no-fund', '--no-update-notifier', '--fetch-retries', '1'],
    env: {},
    absent: /^$/,
  },
}

const mostPackages = 256
const keptCharacters = 4000

export async function installPackages(sandbox: Sandbox, packages: readonly string[], options: InstallOptions): Promise<void> {
  const { manager, index, order } = planInstall(packages, options)
  const { spec } = await sandbox.info(options.signal ? { signal: options.signal } : {})
  if (spec.network === false) throw networkOff(sandbox.id, { manager, index })
  const watching = new AbortController()
  const denied = watchDenied(sandbox, watching.signal)
  try {
    const ended = await follow(sandbox, order, options)
    if (ended.code === 0) return
    throw failure({ manager, ended, denied: denied.first, template: spec.template })
  } finally {
    watching.abort()
    await denied.over
  }
}

interface Plan {
  readonly manager: (typeof managers)[number]
  readonly index: string | undefined
  readonly order: Order
}

interface Order {
  readonly argv: string[]
  readonly env: Readonly<Record<string, string>>
}

/** Throws SandboxError('invalid') naming what is wrong. */
function planInstall(packages: readonly string[], options: InstallOptions): Plan {
  const { manager = 'pip', index, onProgress } = checkCallOptions(options, ['signal', 'manager', 'index', 'timeout', 'onProgress'])
  if (!managers.includes(manager)) throw new SandboxError('invalid', `manager: expected one of ${managers.join(', ')}`)
  if (onProgress !== undefined && typeof onProgress !== 'function')
    throw new SandboxError('invalid', `onProgress: expected a function, got ${kindOf(onProgress)}`)
  if (!Array.isArray(packages) || packages.length === 0 || packages.length > mostPackages)
    throw new SandboxError('invalid', `packages: expected a list of 1 to ${mostPackages} names, such as ['six==1.16.0']`)
  const names = packages as readonly string[]
  names.forEach((name: unknown, at) => {
    // What begins with a dash would be a flag; the manager is told where they end, too.
    if (typeof name !== 'string' || !/^[^\s-][^\p{Cc}]{0,300}$/u.test(name))
      throw new SandboxError('invalid', `packages[${at}]: must be the name of a package, such as 'six==1.16.0'`)
  })
  if (index !== undefined && (typeof index !== 'string' || !/^https?:\/\/[^\s@]+$/.test(index)))
    throw new SandboxError('invalid', "index: must be a URL without a user, such as 'https://pypi.org/simple'")
  const { argv, env, indexFlag } = known[manager]
  return { manager, index, order: { argv: [...argv, ...(index === undefined ? [] : [indexFlag, index]), '--', ...names], env } }
}

function networkOff(id: string, { manager, index }: Pick<Plan, 'manager' | 'index'>): SandboxError {
  const host = index === undefined ? undefined : new URL(index).host
  return new SandboxError('conflict', `sandbox ${id} was created without a network, and ${manager} needs ${host ?? 'the hosts of its index'}`, {
    hint: host === undefined ? `glovebox run --learn-network -- ${manager} install …` : `Sandbox.create({ network: { allow: ['${host}'] } })`,
  })
}

/** What was refused since, of which the first says enough. */
function watchDenied(sandbox: Sandbox, signal: AbortSignal): { readonly first: NetworkRecord | undefined; readonly over: Promise<void> } {
  const seen: { first: NetworkRecord | undefined; over: Promise<void> } = { first: undefined, over: Promise.resolve() }
  const log = sandbox.network.log({ signal })
  seen.over = (async () => {
    for await (const record of log) if (record.verdict === 'denied' && record.scheme !== 'dns') seen.first ??= record
  })().catch(() => undefined)
  return seen
}

interface Ended {
  readonly code: number | undefined
  readonly isThere: boolean
  /** The end of what was printed. */
  readonly said: string
}

async function follow(sandbox: Sandbox, { argv, env }: Order, { signal, timeout, onProgress }: InstallOptions): Promise<Ended> {
  let said = ''
  let line = ''
  const decoder = new TextDecoder()
  const running = sandbox.run(argv, { env, ...(signal && { signal }), ...(timeout !== undefined && { timeout }) })
  for await (const event of running) {
    if (event.type === 'exit') {
      if (line !== '') onProgress?.(line)
      return { code: event.exitCode, isThere: event.outcome.kind !== 'not-started', said: said || describe(event.outcome) }
    }
    if (!('bytes' in event)) continue
    const text = decoder.decode(event.bytes, { stream: true })
    said = `${said}${text}`.slice(-keptCharacters)
    const lines = `${line}${text}`.split('\n')
    line = (lines.pop() ?? '').slice(-keptCharacters)
    for (const each of lines) onProgress?.(each)
  }
  throw new SandboxError('broken', 'the installation ended without an end')
}

function describe(outcome: { readonly kind: string }): string {
  return `it ended as ${outcome.kind}`
}

interface Failed {
  readonly manager: (typeof managers)[number]
  readonly ended: Ended
  readonly denied: NetworkRecord | undefined
  readonly template: string
}

function failure({ manager, ended, denied, template }: Failed): SandboxError {
  if (!ended.isThere || (known[manager].absent.test(ended.said) && ended.said !== ''))
    return new SandboxError('unsupported', `there is no ${manager} in template ${template}`, { hint: "Sandbox.create({ template: 'host' })" })
  if (denied)
    return new SandboxError('denied', `${manager} was denied ${denied.host}:${denied.port}: ${denied.reason}`, {
      hint: `sandbox.network.update({ allow: ['${denied.host}:${denied.port}', …] })`,
    })
  return new SandboxError('conflict', `${manager} installed nothing: ${lastWords(ended.said)}`)
}

function lastWords(said: string): string {
  const lines = said.split('\n').filter((line) => line.trim() !== '')
  return (lines.findLast((line) => /err/i.test(line)) ?? lines.at(-1) ?? 'it did not say why')
    .trim()
    .slice(0, 300)
    .replace(/[\p{Cc}\p{Cf}]/gu, '\ufffd')
}
