import { SandboxError } from '../contract/errors.js'
import type { CommandRules, GuestUser } from '../contract/driver.js'
import type { Observation } from '../contract/posture.js'
import type { OpenCell } from './open-cell.js'
import { permissionDenied } from './start-failure.js'

/**
 * Whether a program that is not on the list is refused, by trying: the kernel cannot be asked for the rules it holds a process to. Throws
 * SandboxError('not-enforced') when it is not.
 */
export async function tryCommands(rules: CommandRules, { cell, warden }: OpenCell): Promise<Observation> {
  const value = [...rules.executable]
  const { unlisted } = rules
  if (unlisted === undefined) return { control: 'commands', value, evidence: 'asserted', source: 'the template has no other program that could be tried' }
  for (const user of cell.users) await trial(unlisted, user, { cell, warden })
  return { control: 'commands', value, evidence: 'probe', source: `tried to execute ${unlisted}: EACCES` }
}

async function trial(program: string, { uid, gid, capabilities }: GuestUser, { cell, warden }: Pick<OpenCell, 'cell' | 'warden'>): Promise<void> {
  const run = cell.beginRun({ memoryBytes: undefined, processes: undefined })
  const place = run.group === undefined ? {} : { group: run.group }
  const result = await warden.start({ argv: [program], env: {}, cwd: cell.workdir, uid, gid, capabilities, rlimits: [], stdin: false, ...place })
  await run.close()
  if (!result.started && result.stage === 'exec' && result.errno === permissionDenied) return
  const found = result.started ? 'was started' : `failed with ${result.text} (errno ${result.errno})`
  throw new SandboxError('not-enforced', `commands of cell: ${program}, which is not listed, ${found} instead of being refused with EACCES`, {
    hint: 'glovebox doctor',
  })
}
