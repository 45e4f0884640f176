/** Containers of an ordinary user: what is asked of the launcher and of the runtime, and what becomes of it. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { programPath } from '../../../src/cell/facts.js'
import type { CellPlan } from '../../../src/cell/arguments.js'
import { defaultLimits } from '../../../src/contract/limit-words.js'
import type { Bundle } from '../../../src/drivers/oci/bundles.js'
import { placeOfOnlooker } from '../../../src/drivers/oci/cgroup-place.js'
import { bundleSeen, handedCount, rootlessArgv, rootlessConfig } from '../../../src/drivers/oci/rootless.js'
import { runtimeNames, runtimes } from '../../../src/drivers/oci/runtimes.js'
import { type Script, startScript } from '../../sys/run-script.js'
import { delegateGroups } from '../../delegated-groups.js'
import { testUnless } from '../../unless.js'

const plan: CellPlan = {
  spec: {
    id: 'abcdefghij0123456789',
    root: {
      name: 'host',
      binds: [
        { source: '/usr', target: '/usr' },
        { source: '/home/u/.cache/glovebox/etc-1', target: '/etc' },
      ],
      symlinks: [{ path: '/bin', target: 'usr/bin' }],
      shell: '/bin/sh',
      env: {},
    },
    limits: { ...defaultLimits, inodes: 25_600, fileSizeBytes: 104_857_600, stated: [] },
    rootMode: 'readonly',
    mounts: [
      { source: '/home/u/in', target: '/data', mode: 'ro' },
      { source: '/home/u/out', target: '/workspace', mode: 'rw' },
    ],
    commands: undefined,
    network: { direct: false, certificates: '/home/u/.cache/glovebox/certificates.pem' },
  },
  ids: { kind: 'single' },
  programs: { launcher: '/opt/glovebox/launcher', warden: '/opt/glovebox/warden' },
  ownerPid: 4711,
  cgroups: { joins: ['/sys/fs/cgroup/own/c/cgroup.procs'], guestJoins: [], runJoins: [{ folder: '/sys/fs/cgroup/own/c/guest', file: 'cgroup.procs' }] },
  sources: ['/home/u/in', '/home/u/out'].map((path, index) => ({ path, descriptor: 20 + index, isFolder: true, uid: 1234, gid: 1234, isOwnGroup: true })),
}
const folder = '/home/u/.cache/glovebox/run/bundles/1.2.3.4-abcdefghij0123456789'
const bundle = { folder, state: `${folder}/state` } as Bundle
const mounts = ['30 25 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory', '40 25 0:9 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw'].join('\n')

/** One option with its values a line, so that a change shows as what it is. */
function lines(argv: readonly string[]): string {
  return `${argv.join(' ').replaceAll(/ (?=--)/g, '\n')}\n`
}

test('a container without root is built by exactly these arguments', async () => {
  const runtime = runtimes.runc.argv({ path: '/usr/bin/runc', bundle: bundleSeen(bundle), cellId: plan.spec.id, descriptors: handedCount(plan) })
  await expect(lines(rootlessArgv({ plan, bundle: folder, runtime, place: placeOfOnlooker(mounts) }))).toMatchFileSnapshot('./golden/rootless.txt')
})

test('a container without root is told by exactly this document', async () => {
  await expect(`${JSON.stringify(rootlessConfig(plan, folder), null, 2)}\n`).toMatchFileSnapshot('./golden/rootless.json')
})

test('where there is only version 2 of cgroups the runtime sees it, and cannot change it', () => {
  expect(placeOfOnlooker('40 25 0:9 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw')).toEqual({ hidden: [], fixed: ['/sys/fs/cgroup'] })
})

interface Seen {
  readonly uid: number
  readonly found: Record<string, unknown>
  readonly said: string
  readonly ended: string
}

async function seenBy(script: Script): Promise<Seen> {
  const { stdout, stderr, code } = await script.ended
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as Seen
}

const ordinaryId = 65_534

describe.each(runtimeNames.filter((name) => runtimes[name].isRootless))('%s as an ordinary user', (name) => {
  const lacking = process.getuid?.() !== 0 ? 'only root can become somebody else' : programPath(name) === undefined && `${name} is not installed`

  testUnless(lacking, { timeout: 60_000 })('a group that was given to them holds memory, processes and processor, and the runtime makes no other', async () => {
    await using groups = delegateGroups(ordinaryId)
    const program = new URL('./programs/limited-container.ts', import.meta.url)
    const seen = await seenBy(await startScript(program, [name], groups.wrapper))
    expect(seen).toEqual({
      uid: ordinaryId,
      found: {
        'uid-map': [[1000, ordinaryId, 1]],
        'limit.memory': 64 * 2 ** 20,
        'limit.processes': 16,
        'limit.cpus': 0.5,
        'warden.cgroup': 'cell',
        'warden.capabilities': expect.objectContaining({ inheritable: '0', ambient: '0' }),
      },
      said: 'here\n',
      ended: 'killed for its memory',
    })
    expect(groups.left()).toEqual([])
    expect(readFileSync('/proc/self/cgroup', 'utf8')).not.toContain(groups.name)
  })
})
