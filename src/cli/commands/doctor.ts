import { arch, release, type } from 'node:os'
import { policyInForce, probeDrivers, templateBuilder } from '../../compose.js'
import type { Availability, Enforcement, Feature, Obstacle, Probe } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { driverMatrix } from '../doctor-matrix.js'
import { exitCodes } from '../exit-codes.js'
import { untilAborted, watchInterrupts } from '../interrupts.js'
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
  const obstacles = policyObstacles()
  const drivers = await Promise.race([probeDrivers(), untilAborted(interrupts.signal)])
  const templates = await findTemplates()
  const ready = obstacles.length === 0 && isReady(drivers)
  const host = { system: `${type()} ${release()} ${arch()}`, node: process.versions.node, uid: process.getuid?.() ?? null }
  if (options.json) await printJson({ version: options.version, host, ready, ...(obstacles.length > 0 && { obstacles }), drivers, templates })
  else {
    const colors = colorsFor(process.stdout)
    const who = host.uid === 0 ? 'root' : `user ${host.uid}`
    const sections = drivers.map((probe) => describeDriver(probe, colors))
    const head = `${colors.bold(`glovebox ${options.version}`)}  ${host.system}, Node ${host.node}, as ${who}`
    const inTheWay = obstacles.length === 0 ? [] : [describeObstacles(obstacles, colors).join('\n')]
    await writeOut(
      `${[wrap(head, 2), ...inTheWay, ...sections, ...driverMatrix(drivers, colors), describeTemplates(templates, colors), verdict(drivers, { ready, colors })].join('\n\n')}\n`,
    )
  }
  return ready ? exitCodes.ok : exitCodes.failure
}

/** A policy that holds for every run here and cannot be read lets none run; what the machine can do is told all the same. */
function policyObstacles(): readonly Obstacle[] {
  try {
    policyInForce(undefined)
    return []
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    return [{ what: 'GLOVEBOX_POLICY', why: error.message.replace(/^GLOVEBOX_POLICY: /, ''), hint: error.hint ?? 'unset GLOVEBOX_POLICY' }]
  }
}

interface TemplateState {
  readonly name: string
  /** Undefined: it can be built. */
  readonly id?: string
  readonly bytes?: number
  readonly damaged?: string
}

/** What was built here, and what could be. */
async function findTemplates(): Promise<readonly TemplateState[]> {
  const builder = templateBuilder()
  const built = await builder.list()
  const missing = builder.recipes.filter(({ name }) => !built.some((each) => each.name === name))
  const there = built.map(({ name, id, bytes, damaged }) => ({ name, id, bytes, ...(damaged !== undefined && { damaged }) }))
  return [...there, ...missing.map(({ name }) => ({ name }))]
}

function describeTemplates(templates: readonly TemplateState[], colors: Colors): string {
  const rows = templates.map(({ name, id, bytes = 0, damaged }) => {
    if (id === undefined) return row(name, `${colors.dim('not built')}: ${asTyped(`glovebox template build ${name}`)}`, colors)
    if (damaged !== undefined) return row(name, `${colors.red('damaged')}: ${escapeControls(damaged)}`, colors)
    return row(name, `${colors.green('built')}, ${bytesInWords(bytes)}`, colors)
  })
  return [colors.bold('templates'), ...rows].join('\n')
}

interface Verdict {
  readonly ready: boolean
  readonly colors: Colors
}

function verdict(drivers: readonly Probe[], { ready, colors }: Verdict): string {
  if (ready) return `${colors.green('✓')} Sandboxes can be made here.  Try: ${ownName()} demo`
  const way = drivers.length === 0 ? `there is no driver for ${type()} yet; Linux is needed` : 'an obstacle above is in the way'
  return `${colors.red('✗')} No sandbox can be made here: ${way}.`
}

function isReady(drivers: readonly Probe[]): boolean {
  return drivers.some((probe) => probe.available && probe.isolates)
}

function describeDriver(probe: Probe, colors: Colors): string {
  const title = `${colors.bold(probe.driver)}  tier ${probe.tier}`
  if (!probe.available) return [`${title}, ${colors.red('not available')}`, ...describeObstacles(probe.obstacles, colors)].join('\n')
  if (!probe.isolates)
    return `${title}, ${colors.yellow('isolates nothing')}\n${row('use', `for tests only: --driver ${probe.driver} --min-tier ${probe.tier}`)}`
  const limits = Object.entries(probe.limits).map(([name, enforcement]) => row(name, describeEnforcement(name, enforcement, colors), colors))
  const ours = ['time', 'output'].map((name) => row(name, `${colors.green('enforced')} by the engine, as in every driver`, colors))
  const filter = probe.filtersSyscalls ? `${colors.green('filtered')} by seccomp` : colors.yellow('not filtered')
  const facts = Object.entries(probe.facts).map(([name, value]) => row(name, escapeControls(value), colors))
  const rows = [...limits, ...ours, row('syscalls', filter, colors), ...describeFeatures(probe, colors), ...describeUsers(probe, colors), ...facts]
  return [`${title}, ${colors.green('ready')}`, ...rows].join('\n')
}

function describeObstacles(obstacles: readonly Obstacle[], colors: Colors): string[] {
  return obstacles.flatMap(({ what, why, hint }) => [
    `  ${colors.red('✗')} ${wrap(escapeControls(`${what}: ${why}`), 4)}`,
    `    ${wrap(`${colors.cyan('hint:')} ${escapeControls(asTyped(hint))}`, 4)}`,
  ])
}

function describeEnforcement(name: string, enforcement: Enforcement, colors: Colors): string {
  if (!enforcement.enforced) return `${colors.yellow('not enforced')}: ${escapeControls(enforcement.why)}`
  const most =
    enforcement.max === undefined
      ? ''
      : `, at most ${['memory', 'disk', 'fileSize', 'readRate', 'writeRate'].includes(name) ? bytesInWords(enforcement.max) : enforcement.max}`
  return `${colors.green('enforced')} by ${escapeControls(enforcement.by)}${most}`
}

const featureRows: Readonly<Record<Feature, readonly [label: string, by: string]>> = {
  commands: ['commands', ' by Landlock'],
  'mounts-ro': ['mounts ro', ''],
  'mounts-overlay': ['mounts overlay', ''],
  'mounts-rw': ['mounts rw', ''],
  'root-overlay': ['root overlay', ''],
  liners: ['liners', ''],
  pause: ['pause', ''],
  network: ['network', ''],
  'direct-network': ['network direct', ''],
}

function describeFeatures({ features }: Probe, colors: Colors): string[] {
  return (Object.keys(featureRows) as Feature[]).map((name) => {
    const [label, by] = featureRows[name]
    return row(label, describeAvailability(features[name], { by, colors }), colors)
  })
}

function describeUsers(probe: Probe, colors: Colors): string[] {
  return Object.entries(probe.users).map(([name, user]) => row(`user ${name}`, describeAvailability(user, { by: '', colors }), colors))
}

function describeAvailability(found: Availability, { by, colors }: { readonly by: string; readonly colors: Colors }): string {
  return found.available ? `${colors.green('available')}${by}` : `${colors.yellow('not available')}: ${escapeControls(found.why)}`
}

const labelWidth = 14

function row(label: string, text: string, colors?: Colors): string {
  const padded = escapeControls(label).padEnd(labelWidth - 2)
  return `  ${colors ? colors.dim(padded) : padded}  ${wrap(text, labelWidth + 2)}`
}
