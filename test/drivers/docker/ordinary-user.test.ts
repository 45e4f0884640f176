import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Probe } from '../../../src/contract/driver.js'
import type { ReceiptControl } from '../../../src/contract/receipt.js'
import { type DockerEngine, noDockerEngine, startDockerEngine } from '../../docker-engine.js'
import { startScript } from '../../sys/run-script.js'
import { skipGroup } from '../../unless.js'

const impossible = noDockerEngine()
const user = 65_534
/** Whoever has this group may talk to the engine. */
const group = 4242
const place = mkdtempSync(join(tmpdir(), 'gbx-docker-user-'))
let engine: DockerEngine

beforeAll(async () => {
  if (impossible !== undefined) return
  engine = await startDockerEngine()
  chmodSync(engine.folder, 0o711)
  chownSync(engine.address.path, 0, group)
  chmodSync(place, 0o755)
  for (const [name, owner] of [
    ['in', user],
    ['out', user],
    ['home', user],
    ['foreign', 1234],
  ] as const) {
    mkdirSync(join(place, name))
    chownSync(join(place, name), owner, owner)
  }
  writeFileSync(join(place, 'in/a'), 'given\n')
  chownSync(join(place, 'in/a'), user, user)
})
afterAll(async () => {
  await engine?.[Symbol.asyncDispose]()
  rmSync(place, { recursive: true, force: true })
})

interface Told {
  readonly probe: Probe
  readonly ran: { readonly stdout: string; readonly stderr: string }
  readonly controls: readonly ReceiptControl[]
  readonly memory: string
  readonly foreign: string
}

const as = (groups: readonly string[]): string[] => [
  ...[
    'setpriv',
    '--reuid',
    `${user}`,
    '--regid',
    `${user}`,
    ...groups,
    'env',
    '-u',
    'GLOVEBOX_KEY_DIR',
    '-u',
    'XDG_RUNTIME_DIR',
    '-u',
    'XDG_CACHE_HOME',
    `HOME=${join(place, 'home')}`,
  ],
]

describe('an ordinary user to whom the engine listens', () => {
  skipGroup(impossible ?? false)

  test('has cells under its own id, of which the kernel is asked as of any other, and nothing is claimed that does not hold', async () => {
    const { ended } = await startScript(new URL('programs/user-cell.ts', import.meta.url), [engine.address.path, place], as(['--groups', `${group}`]))
    const { stdout, stderr, code } = await ended
    expect([stderr, code]).toEqual(['', 0])
    const { probe, ran, controls, memory, foreign } = JSON.parse(stdout) as Told
    expect(probe).toMatchObject({ available: true, obstacles: [], features: { pause: { available: false }, liners: { available: true } } })
    // The group by which the engine is reached is in no cell.
    expect(ran.stdout).toBe('given\n1000\ny\nGroups:\t1000 \n')
    expect(ran.stderr).toContain('Read-only file system')
    expect([readFileSync(join(place, 'out/made'), 'utf8'), statSync(join(place, 'out/made')).uid, readdirSync(join(place, 'in'))]).toEqual([
      'made\n',
      user,
      ['a'],
    ])
    expect(readFileSync(join(place, 'in/a'), 'utf8')).toBe('given\n')
    const told = (name: string): ReceiptControl | undefined => controls.find(({ control }) => control === name)
    for (const name of ['namespaces', 'mounts', 'uid-map', 'warden', 'capabilities', 'seccomp', 'placement', 'limit.cpus', 'limit.processes', 'limit.disk'])
      expect(told(name), name).toMatchObject({ evidence: 'kernel', verdict: 'proven' })
    expect(told('limit.cpus')).toMatchObject({ enforced: 0.25 })
    expect(told('filter')).toMatchObject({ verdict: 'asserted' })
    // Where the engine's cgroups do not bound all of it, nobody is told that they do.
    if (probe.limits.memory.enforced) expect([told('limit.memory')?.verdict, memory]).toEqual(['proven', 'was created'])
    else expect([told('limit.memory')?.verdict, memory]).toEqual(['not-enforced', expect.stringContaining(probe.limits.memory.why)])
    expect(foreign).toContain('belongs to uid 1234')
    expect(await engine.client.call('GET', '/containers/json', { query: { all: '1' } })).toEqual([])
  })

  test('and nobody without that group', async () => {
    const { ended } = await startScript(new URL('programs/user-cell.ts', import.meta.url), [engine.address.path, place], as(['--clear-groups']))
    const { stderr, code } = await ended
    expect(code).not.toBe(0)
    expect(stderr).toContain('this user may not connect to it')
  })
})
