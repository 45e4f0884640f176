/** Whether a runtime starts a container at all, found by starting one: from a bundle in a folder of its own, within a time, and nothing is left of it. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { randomId } from '../../sys/random-id.js'
import { argumentsOf, findProcesses, killProcess } from '../../sys/processes.js'
import { capture } from '../../sys/spawn.js'
import { makeTempFolder, removeTree } from '../../sys/temp-folder.js'

export interface ContainerTrial {
  readonly path: string
  /** Beside where its state is. */
  readonly flags: readonly string[]
  /** What is executed, in a root with nothing in it but what is mounted. */
  readonly args: readonly string[]
  readonly mounts: readonly object[]
  readonly trialMs: number
}

/** What it printed, or why it did not. */
export type Trialled = { readonly printed: string } | { readonly why: string }

export const trialPrefix = 'glovebox-container-'

export async function tryContainer({ path, flags, args, mounts, trialMs }: ContainerTrial): Promise<Trialled> {
  const folder = await makeTempFolder(trialPrefix)
  try {
    await mkdir(join(folder, 'root'))
    await writeFile(join(folder, 'config.json'), JSON.stringify(configOf({ folder, args, mounts })))
    const own = [path, '--root', join(folder, 'state'), ...flags] as const
    const { code, stdout, stderr } = await within(trialMs, capture([...own, 'run', '--bundle', folder, `trial-${randomId()}`], { timeoutMs: 2 * trialMs }))
    return code === 0 ? { printed: stdout.toString('utf8') } : { why: stderr.trim().split('\n').at(-1) || `it ended with ${code}` }
  } finally {
    // What hangs is known by the folder that it was told of.
    findProcesses((pid) => argumentsOf(pid).some((word) => word.includes(folder))).forEach(killProcess)
    await removeTree(folder)
  }
}

function configOf({ folder, args, mounts }: Pick<ContainerTrial, 'args' | 'mounts'> & { readonly folder: string }): object {
  return {
    ociVersion: '1.0.2',
    root: { path: join(folder, 'root'), readonly: true },
    process: { terminal: false, cwd: '/', user: { uid: 0, gid: 0 }, env: [], args, noNewPrivileges: true },
    mounts,
    linux: { namespaces: ['mount', 'pid', 'network', 'ipc', 'uts'].map((type) => ({ type })) },
  }
}

type Ended = Pick<Awaited<ReturnType<typeof capture>>, 'code' | 'stdout' | 'stderr'>

/** Also of one whose children hold its output open when it was killed. */
async function within(milliseconds: number, ended: Promise<Ended>): Promise<Ended> {
  const late = new AbortController()
  const tooLate = sleep(milliseconds, failed(`no answer within ${milliseconds} ms`), { signal: late.signal })
  tooLate.catch(() => undefined)
  try {
    return await Promise.race([ended.catch(failed), tooLate])
  } finally {
    late.abort()
  }
}

function failed(error: unknown): Ended {
  return { code: -1, stdout: Buffer.alloc(0), stderr: error instanceof Error ? error.message : String(error) }
}
