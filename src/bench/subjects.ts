import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Ground } from './ground.js'
import type { Subject } from './sampling.js'

const execute = promisify(execFile)

/** Not the one on PATH, which on some machines is a slow script that looks for another. */
export const python: string[] = ['/usr/bin/python3', '-c', 'print(1)']
const patienceMs = 60_000

/** The job that everybody does: its output must be there, or nothing was measured. */
export function expectOne(stdout: string): void {
  if (stdout !== '1\n') throw new Error(`the run printed ${JSON.stringify(stdout)} instead of 1`)
}

export async function runPlainly(argv: readonly string[]): Promise<string> {
  const [file = '', ...args] = argv
  return (await execute(file, args, { timeout: patienceMs })).stdout
}

export function plainSpawn(): Subject {
  return { name: 'plain spawn of python3', run: async () => expectOne(await runPlainly(python)) }
}

/** The least that bubblewrap can be asked for to have its own of everything. */
export function bareBwrap(): Subject {
  return { name: bareBwrapName, run: async () => expectOne(await runPlainly(['bwrap', ...bwrapFlags(), '--', ...python])) }
}

export const bareBwrapName = 'bwrap, no filter, no limits'

function bwrapFlags(): readonly string[] {
  const links = ['bin', 'sbin', 'lib', 'lib64'].filter((name) => existsSync(`/usr/${name}`)).flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`])
  return ['--unshare-all', '--die-with-parent', '--ro-bind', '/usr', '/usr', ...links, '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp']
}

export function coldCell({ Sandbox, platform }: Ground): Subject {
  return {
    name: 'glovebox: create + python3 + close',
    run: async () => {
      const sandbox = await Sandbox.create({ platform, template: 'python' })
      try {
        expectOne((await sandbox.run(python)).stdout)
      } finally {
        await sandbox.close()
      }
    },
  }
}

export function throughCli({ cli }: Ground): Subject {
  return { name: 'glovebox run (CLI, end to end)', run: async () => expectOne(await runPlainly([...cli, 'run', '-q', '--', ...python])) }
}
