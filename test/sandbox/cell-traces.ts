import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { statePlace } from '../../src/sys/places.js'

/** Everything on this machine that is named after one of these cells: records, cgroups. */
export function tracesOf(ids: readonly string[]): string[] {
  const groups = execFileSync(
    'find',
    ['/sys/fs/cgroup', '-ignore_readdir_race', '-type', 'd', '(', ...ids.flatMap((id) => ['-name', `*${id}*`, '-o']), '-false', ')'],
    {
      encoding: 'utf8',
      // What others remove meanwhile is complained of.
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  )
  const records = readdirSync(statePlace(), { recursive: true, encoding: 'utf8' }).filter((name) => ids.some((id) => name.includes(id)))
  return [...groups.split('\n').filter((line) => line !== ''), ...records]
}
