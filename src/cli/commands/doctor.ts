import { arch, release, type } from 'node:os'
import { createPlatform } from '../../compose.js'
import type { Enforcement, Probe } from '../../contract/driver.js'
import { exitCodes } from '../exit-codes.js'
import { watchInterrupts } from '../interrupts.js'
import { asTyped, type Colors, colorsFor, escapeControls, ownName, printJson } from '../print.js'
import { writeOut } from '../streams.js'
import { bytesInWords } from '../words.js'
import { wrap } from '../wrap.js'

interface DoctorOptions {
  readonly json: boolean
  readonly version: string
}

/** Shows what each driver can enforce here. Resolves to 0 when one that isolates is available. */
export async function doctor(options: DoctorOptions): Promise<number> {
  using interrupts = watchInterrupts()
  await using platform = createPlatform()
  const drivers = await platform.probe({ signal: interrupts.signal })
  const ready = isReady(drivers)
  const host = { system: `${type()} ${release()} ${arch()}`, node: process.versions.node, uid: process.getuid?.() ?? null }
  if (options.json) await printJson({ version: options.version, host, ready, drivers })
  else {
    const colors = colorsFor(process.stdout)
    const who = host.uid === 0 ? 'root' : `user ${host.uid}`
    const sections = drivers.map((probe) => describeDriver(probe, colors))
    const head = `${colors.bold(`glovebox ${options.version}`)}  ${host.system}, Node ${host.node}, as ${who}`
    await writeOut(`${[wrap(head, 2), ...sections, verdict(drivers, colors)].join('\n\n')}\n`)
  }
  return ready ? exitCodes.ok : exitCodes.failure
}

function verdict(drivers: readonly Probe[], colors: Colors): string {
  if (isReady(drivers)) return `${colors.green('✓')} Sandboxes can be made here.  Try: ${ownName()} demo`
  const way = drivers.length === 0 ? `there is no driver for ${type()} yet; Linux is needed` : 'an obstacle above is in the way'
  return `${colors.red('✗')} No sandbox can be made here: ${way}.`
}

function isReady(drivers: readonly Probe[]): boolean {
  return drivers.some((probe) => probe.available && probe.isolates)
}

function describeDriver(probe: Probe, colors: Colors): string {
  const title = `${colors.bold(probe.driver)}  tier ${probe.tier}`
  if (!probe.available) return [`${title}, ${colors.red('not available')}`, ...describeObstacles(probe, colors)].join('\n')
  if (!probe.isolates)
    return `${title}, ${colors.yellow('isolates nothing')}\n${row('use', `for tests only: --driver ${probe.driver} --min-tier ${probe.tier}`)}`
  const limits = Object.entries(probe.limits).map(([name, enforcement]) => row(name, describeEnforcement(name, enforcement, colors), colors))
  const ours = ['time', 'output'].map((name) => row(name, `${colors.green('enforced')} by the engine, as in every driver`, colors))
  const filter = probe.filtersSyscalls ? `${colors.green('filtered')} by seccomp` : colors.yellow('not filtered')
  const facts = Object.entries(probe.facts).map(([name, value]) => row(name, escapeControls(value), colors))
  return [`${title}, ${colors.green('ready')}`, ...limits, ...ours, row('syscalls', filter, colors), ...describeUsers(probe, colors), ...facts].join('\n')
}

function describeObstacles(probe: Probe, colors: Colors): string[] {
  return probe.obstacles.flatMap(({ what, why, hint }) => [
    `  ${colors.red('✗')} ${wrap(escapeControls(`${what}: ${why}`), 4)}`,
    `    ${wrap(`${colors.cyan('hint:')} ${escapeControls(asTyped(hint))}`, 4)}`,
  ])
}

function describeEnforcement(name: string, enforcement: Enforcement, colors: Colors): string {
  if (!enforcement.enforced) return `${colors.yellow('not enforced')}: ${escapeControls(enforcement.why)}`
  const most = enforcement.max === undefined ? '' : `, at most ${name === 'memory' || name === 'disk' ? bytesInWords(enforcement.max) : enforcement.max}`
  return `${colors.green('enforced')} by ${escapeControls(enforcement.by)}${most}`
}

function describeUsers(probe: Probe, colors: Colors): string[] {
  return Object.entries(probe.users).map(([name, user]) =>
    row(`user ${name}`, user.available ? colors.green('available') : `${colors.yellow('not available')}: ${escapeControls(user.why)}`, colors),
  )
}

const labelWidth = 14

function row(label: string, text: string, colors?: Colors): string {
  const padded = escapeControls(label).padEnd(labelWidth - 2)
  return `  ${colors ? colors.dim(padded) : padded}  ${wrap(text, labelWidth + 2)}`
}
