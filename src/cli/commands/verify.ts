import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { arch, release, tmpdir, type } from 'node:os'
import { join } from 'node:path'
import { createPlatform, probeDrivers } from '../../compose.js'
import { containmentGroups, type ContainmentGroup } from '../../conformance/index.js'
import type { Probe } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import {
  createHostView,
  createPlatformSubject,
  everyCase,
  isMountOfOthers,
  renderHtml,
  stateFolders,
  verify,
  type VerifyOptions,
  type VerifyProgress,
  type VerifyReport,
} from '../../verify/index.js'
import { exitCodes } from '../exit-codes.js'
import { untilAborted, watchInterrupts } from '../interrupts.js'
import { colorsFor, escapeControls, printJson } from '../print.js'
import { writeOut } from '../streams.js'
import { tableOf } from '../table.js'
import { describeVerification } from '../verify-matrix.js'
import { serveForVerify } from '../verify-server.js'

export interface VerifyFlags {
  readonly driver?: readonly string[]
  readonly group?: readonly string[]
  readonly case?: readonly string[]
  readonly list?: true
  readonly html?: string
  readonly json?: true
  readonly quiet?: true
}

const didNotHold = 1

/** Attacks this installation. Resolves to 1 when anything did not hold. */
export async function verifyInstallation(flags: VerifyFlags, version: string): Promise<number> {
  const asked = parseFlags(flags)
  if (flags.list) return listCases(asked, flags)
  using interrupts = watchInterrupts()
  const probes = await Promise.race([probeDrivers(), untilAborted(interrupts.signal)])
  checkDrivers(asked.drivers, probes)
  using progress = showProgress(flags)
  const report = await attack({ ...asked, probes, version, signal: interrupts.signal, onProgress: progress.show })
  progress.clear()
  if (flags.html !== undefined) writeReport(flags.html, report)
  if (flags.json) await printJson(report)
  else await writeOut(describeVerification(report, { colors: colorsFor(process.stdout), columns: process.stdout.columns, isQuiet: flags.quiet === true }))
  return report.counts.failed > 0 ? didNotHold : report.ok ? exitCodes.ok : exitCodes.failure
}

interface Asked {
  readonly drivers?: readonly string[]
  readonly groups?: readonly ContainmentGroup[]
  readonly ids?: readonly string[]
}

type Attack = Omit<VerifyOptions, 'host' | 'system' | 'subjectOf' | 'serve'>

/** With folders and canaries of its own, so that what is left can be told from what was there. */
async function attack(options: Attack): Promise<VerifyReport> {
  const before = process.env.TMPDIR
  const temporary = mkdtempSync(join(tmpdir(), 'gbx-verify-'))
  const snapshots = join(temporary, 'snapshots')
  // Folders of the store itself are there before anyone looks what is left.
  for (const name of ['drafts', 'names', 'objects']) mkdirSync(join(snapshots, name), { recursive: true, mode: 0o700 })
  try {
    await using host = await createHostView({ ownFolders: [temporary], sharedFolders: stateFolders(), isOthers: isMountOfOthers })
    process.env.TMPDIR = temporary
    return await verify({
      ...options,
      host,
      system: `${type()} ${release()} ${arch()}`,
      subjectOf: (probe) => {
        const platform = createPlatform({ snapshotDir: snapshots })
        const subject = createPlatformSubject({ platform, probe, host })
        return Promise.resolve({ ...subject, [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose]() })
      },
      serve: () => serveForVerify(),
    })
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
    rmSync(temporary, { recursive: true, force: true })
  }
}

function parseFlags({ driver, group, case: ids }: VerifyFlags): Asked {
  const known: readonly string[] = containmentGroups
  const stranger = group?.find((name) => !known.includes(name))
  if (stranger !== undefined)
    throw new SandboxError('invalid', `--group: there is no group ${JSON.stringify(stranger)}; there are ${known.join(', ')}`, {
      hint: 'glovebox verify --help',
    })
  const unknown = ids?.find((id) => !everyCase.some((each) => each.id === id))
  if (unknown !== undefined) throw new SandboxError('invalid', `--case: there is no case ${JSON.stringify(unknown)}`, { hint: 'glovebox verify --list' })
  return {
    ...(driver && { drivers: driver }),
    ...(group && { groups: group as readonly ContainmentGroup[] }),
    ...(ids && { ids }),
  }
}

/** One that is named has to be there: nobody should take a report without it for one that holds. */
function checkDrivers(named: readonly string[] | undefined, probes: readonly Probe[]): void {
  for (const name of named ?? []) {
    const probe = probes.find(({ driver }) => driver === name)
    if (!probe)
      throw new SandboxError('invalid', `--driver: there is no driver ${JSON.stringify(name)}; there are ${probes.map(({ driver }) => driver).join(', ')}`)
    const [obstacle] = probe.obstacles
    if (obstacle) throw new SandboxError('unavailable', `driver ${name} is not available here: ${obstacle.what}: ${obstacle.why}`, { hint: obstacle.hint })
  }
}

async function listCases({ groups, ids }: Asked, { json }: VerifyFlags): Promise<number> {
  const cases = containmentGroups
    .flatMap((group) => everyCase.filter((each) => each.group === group))
    .filter(({ id, group }) => (groups?.includes(group) ?? true) && (ids?.includes(id) ?? true))
    .map(({ id, group, name, threats, tries, means }) => ({ id, group, name, threats, tries, means }))
  if (json) await printJson({ cases })
  else
    await writeOut(
      tableOf(
        ['CASE', 'THREATS', 'TRIES'],
        cases.map(({ id, threats, tries }) => [id, threats.join(' '), tries]),
      ),
    )
  return exitCodes.ok
}

interface Progress extends Disposable {
  readonly show: (progress: VerifyProgress) => void
  readonly clear: () => void
}

/** One line that is written over, where a person looks. */
function showProgress({ json, quiet }: VerifyFlags): Progress {
  const isShown = process.stderr.isTTY && !json && !quiet
  const clear = (): void => {
    if (isShown) process.stderr.write('\r\u001b[K')
  }
  return {
    show: ({ driver, place, done, total, id }) => {
      if (!isShown) return
      const line = `${driver}${place === undefined ? '' : ` ${place}`} ${done}/${total} ${id}`
      process.stderr.write(`\r\u001b[K${colorsFor(process.stderr).dim(escapeControls(line).slice(0, (process.stderr.columns || 80) - 1))}`)
    },
    clear,
    [Symbol.dispose]: clear,
  }
}

function writeReport(path: string, report: VerifyReport): void {
  try {
    writeFileSync(path, renderHtml(report))
  } catch (error) {
    throw new SandboxError('unavailable', `--html: ${(error as Error).message}`, { cause: error })
  }
}
