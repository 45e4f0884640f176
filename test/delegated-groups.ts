/** Cgroups that root gives to another account, as an administrator or a service manager would. */
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseHierarchies } from '../src/sys/cgroup-mounts.js'

export interface DelegatedGroups extends AsyncDisposable {
  readonly name: string
  /** What is put before a command to start it there, as that account, with a home of its own. */
  readonly wrapper: readonly string[]
  /** Groups below that are still there. */
  left(): string[]
}

const controllers = ['memory', 'cpu', 'cpuacct', 'pids', 'freezer', 'blkio']
const patienceMs = 5000

export function delegateGroups(id: number): DelegatedGroups {
  const home = mkdtempSync(join(tmpdir(), 'gbx-delegated-'))
  const name = basename(home)
  const hierarchies = parseHierarchies(readFileSync('/proc/self/mountinfo', 'utf8'))
  const wanted = hierarchies.filter(({ version, options }) => version === 2 || options.some((option) => controllers.includes(option)))
  const folders = wanted.map(({ mountPoint }) => join(mountPoint, name))
  chownSync(home, id, id)
  for (const folder of folders) {
    mkdirSync(folder)
    for (const path of [folder, join(folder, 'cgroup.procs'), join(folder, 'tasks'), join(folder, 'cgroup.subtree_control')])
      if (existsSync(path)) chownSync(path, id, id)
  }
  const enter = `for folder in ${folders.join(' ')}; do echo 0 > $folder/cgroup.procs || exit 9; done; exec "$@"`
  const account = ['setpriv', '--reuid', `${id}`, '--regid', `${id}`, '--clear-groups', 'env', '-u', 'XDG_RUNTIME_DIR', `HOME=${home}`, `TMPDIR=${home}`]
  const left = (): string[] => folders.flatMap((folder) => below(folder))
  return {
    name,
    wrapper: ['sh', '-c', enter, 'sh', ...account],
    left,
    [Symbol.asyncDispose]: async () => {
      rmSync(home, { recursive: true, force: true })
      for (const folder of folders) await removeGroup(folder)
    },
  }
}

function below(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [join(folder, entry.name), ...below(join(folder, entry.name))] : [],
  )
}

/** Whoever was in it may still be ending. */
async function removeGroup(folder: string): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += 50) {
    try {
      for (const path of below(folder).reverse()) rmdirSync(path)
      rmdirSync(folder)
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY' || waitedMs > patienceMs) throw error
      await sleep(50)
    }
  }
}
