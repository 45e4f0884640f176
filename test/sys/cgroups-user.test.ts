import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildSync } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseCgroupMounts } from '../../src/sys/cgroup-mounts.js'
import { skipGroup } from '../unless.js'

const nobody = 65534
const isRoot = process.getuid?.() === 0
const hierarchies = parseCgroupMounts({ mountinfo: readFileSync('/proc/self/mountinfo', 'utf8'), cgroup: readFileSync('/proc/self/cgroup', 'utf8') })
const isVersion1 = ['memory', 'cpu', 'pids'].every((name) => hierarchies.some((mount) => mount.version === 1 && mount.controllers.includes(name as 'memory')))

/** What an ordinary user does with the layer: asks, makes a cell, puts a child into it, and removes it. */
const program = `
import { spawn, spawnSync } from 'node:child_process'
import { detectCgroups } from './cgroups.js'
const found = detectCgroups()
const answer = 'unavailable' in found ? found : { enforces: found.enforces }
if (!('unavailable' in found)) {
  const cell = await found.create({ id: 'abcdefghij0123456789', memoryBytes: 48 * 2 ** 20, cpus: 0.5, processes: 8 })
  answer.stated = cell.stated()
  cell.settle()
  const run = cell.beginRun({ memoryBytes: undefined, processes: undefined })
  const doors = [...cell.guestJoins, ...cell.runJoins.map(({ folder, file }) => [folder, run.name, file].join('/'))]
  const enter = doors.map((path) => 'echo $$ > ' + path).join(' && ')
  answer.signal = spawnSync('/bin/sh', ['-c', enter + ' && exec /usr/bin/python3 -c "x = bytearray(200 * 2**20)"']).signal
  answer.oomKills = [run.counts().oomKills, cell.usage().oomKills]
  const left = spawn('/bin/sh', ['-c', enter + ' && echo in && exec sleep 60'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise((resolve) => left.once('exit', (_, signal) => resolve(signal)))
  await new Promise((resolve) => left.stdout.once('data', resolve))
  await cell.remove()
  answer.left = await ended
}
console.log(JSON.stringify(answer))
`

let place: string

beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), 'cgroups-user-'))
  chmodSync(place, 0o755)
  buildSync({
    entryPoints: [new URL('../../src/sys/cgroups.ts', import.meta.url).pathname],
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile: join(place, 'cgroups.js'),
  })
  writeFileSync(join(place, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(place, 'main.js'), program)
  // The interpreter may stand where only root can reach it.
  copyFileSync(process.execPath, join(place, 'node'))
})
afterAll(() => rmSync(place, { recursive: true }))

function askAsNobody(joins: readonly string[]): Record<string, unknown> {
  const script = `${joins.map((path) => `echo $$ > ${path} && `).join('')}exec setpriv --reuid ${nobody} --regid ${nobody} --clear-groups ./node main.js`
  return JSON.parse(execFileSync('/bin/sh', ['-c', script], { cwd: place, encoding: 'utf8', env: { PATH: '/usr/bin:/bin' } })) as Record<string, unknown>
}

describe('for an ordinary user', () => {
  skipGroup(!(isRoot && isVersion1) && 'needs root, to give a user cgroups of version 1')
  it('cgroups are unavailable where none is theirs, and the reason says which may not be written', () => {
    const memory = hierarchies.find((mount) => mount.controllers.includes('memory'))
    expect(askAsNobody([]).unavailable).toContain(`${memory?.own} may not be written by this user`)
  })

  it('cgroups work where the groups they are in were given to them', () => {
    const folders = hierarchies.filter((mount) => mount.version === 1).map((mount) => join(mount.own, `given-${process.pid}`))
    try {
      for (const folder of folders) {
        mkdirSync(folder)
        chownSync(folder, nobody, nobody)
      }
      expect(askAsNobody(folders.map((folder) => join(folder, 'cgroup.procs')))).toMatchObject({
        enforces: { memory: { enforced: true }, cpus: { enforced: true }, cpuTime: { enforced: true }, processes: { enforced: true } },
        stated: { memoryBytes: 48 * 2 ** 20, cpus: 0.5, processes: 8 },
        signal: 'SIGKILL',
        oomKills: [1, 1],
        left: 'SIGKILL',
      })
    } finally {
      for (const folder of folders) rmdirSync(folder)
    }
  })
})
