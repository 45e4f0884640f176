import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Probe } from '../../src/contract/driver.js'
import type { Platform } from '../../src/contract/platform.js'
import { verifyReceipt } from '../../src/receipt/index.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { descendantsOf } from '../../src/sys/posture/process-tree.js'
import { waitUntil } from './processes.js'

let platform: Platform
let probe: Probe

beforeAll(async () => {
  platform = createPlatform()
  const found = (await platform.probe()).find(({ driver }) => driver === 'bwrap')
  if (!found?.available) throw new Error(`bwrap is not available here: ${JSON.stringify(found?.obstacles)}`)
  probe = found
})
afterAll(() => platform[Symbol.asyncDispose]())

/** What becomes a program later is called as its keeper is, and is the keeper's child. */
function waiting(): number[] {
  const commands = new Map(descendantsOf(process.pid).map((pid) => [pid, fieldsOf(pid)]))
  return [...commands].filter(([, fields]) => fields.name === 'keeper' && commands.get(fields.parent)?.name === 'keeper').map(([pid]) => pid)
}

function fieldsOf(pid: number): { readonly name: string; readonly parent: number } {
  try {
    const [, name = '', parent = ''] = /\((.*)\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? []
    return { name, parent: Number(parent) }
  } catch {
    return { name: '', parent: 0 }
  }
}

async function warmUp(sandbox: Sandbox, options: object = {}): Promise<void> {
  for (let run = 0; run < 2; run += 1) await sandbox.run(['true'], options)
  await waitUntil(() => waiting().length === 1)
}

const everything = [
  'grep -E "^(Umask|Uid|Gid|Groups|FDSize|Sig[PBIC]|Shd|Cap|NoNewPrivs|Seccomp|Cpus|Mems|CoreDumping)" /proc/self/status',
  'cat /proc/self/limits; tr "\\0" "\\n" </proc/self/environ; pwd',
  'ls -l /proc/self/fd | sed -E "s/.* ([0-9]+) -> /\\1 /; s/\\[[0-9]+\\]//; s/[0-9]+\\/fd/fd/"; for n in /proc/self/ns/*; do readlink $n; done',
  // Whether it waits already for those it started is a matter of moments.
  'ps -o stat= -p $$ | sed "s/^[RSD]/./; s/+//"; cut -d" " -f5,6,7,8 /proc/$$/stat | sed "s/$$/self/g"; sed -E "s/[^/]*$//" /proc/self/cgroup; sed -n "s/ .*//p" /proc/self/oom_score_adj',
].join('; ')

describe('a program that was made ready', () => {
  test.for(['user', 'root'] as const)('sees nothing else than one that was not, as %s', async (user, { skip }) => {
    const told = probe.users[user]
    if (!told.available) skip(told.why)
    await using sandbox = await Sandbox.create({ platform })
    const anew = await sandbox.run(everything, { user })
    await warmUp(sandbox, { user })
    const [pid] = waiting()
    const ready = await sandbox.run(everything, { user })
    expect(waiting()).not.toContain(pid)
    expect([ready.stdout, ready.stderr, ready.exitCode]).toEqual([anew.stdout, anew.stderr, 0])
    expect(anew.stdout).toContain('NoNewPrivs:\t1')
  })

  test('is of its call alone: nothing of the one before is in it', async () => {
    await using sandbox = await Sandbox.create({ platform })
    await warmUp(sandbox, { env: { SECRET: 'of-another' } })
    expect((await sandbox.run('env; cat /proc/self/environ')).stdout).not.toContain('of-another')
  })

  test('counts as one process, and where fewer than 32 are allowed there is none', async () => {
    await using sandbox = await Sandbox.create({ platform, limits: { processes: 31 } })
    for (let run = 0; run < 3; run += 1) await sandbox.run(['true'])
    await sleep(100)
    expect(waiting()).toEqual([])
  })

  test('takes no place up under limits that changed', async ({ skip }) => {
    const { processes } = probe.limits
    if (!processes.enforced) skip(processes.why)
    else if (processes.rlimit) skip(`only cgroups take other limits later, and here processes are held by ${processes.by}`)
    await using sandbox = await Sandbox.create({ platform })
    await warmUp(sandbox)
    await sandbox.limit({ processes: 2 })
    expect(waiting()).toEqual([])
    expect((await sandbox.run('(echo child); echo ok', { stdin: '' })).stdout).toBe('child\nok\n')
  })

  test('is none where the profile is the user’s own', async () => {
    await using sandbox = await Sandbox.create({ platform, seccomp: { defaultAction: 'SCMP_ACT_ALLOW' } as never })
    for (let run = 0; run < 3; run += 1) await sandbox.run(['true'])
    await sleep(100)
    expect(waiting()).toEqual([])
  })

  test('is killed with all of its user by a guest that may, which the next run does not notice', async () => {
    await using sandbox = await Sandbox.create({ platform })
    const killer = await sandbox.spawn('trap "" TERM; read line; kill -9 -1; echo done; read line')
    await warmUp(sandbox)
    const [pid] = waiting()
    // Until it has its filter it may still be nobody's that a guest can kill.
    await waitUntil(() => /^Seccomp:\t2/m.test(readFileSync(`/proc/${pid}/status`, 'latin1')))
    await killer.stdin.write('\n')
    await waitUntil(() => !waiting().includes(pid as number))
    expect((await sandbox.run('echo next')).stdout).toBe('next\n')
  })

  test('is in no receipt until it runs, and proven like any other then', async () => {
    await using sandbox = await Sandbox.create({ platform })
    await warmUp(sandbox)
    const before = await sandbox.receipt()
    expect([before.inspected.processes, waiting()]).toEqual([0, []])
    await warmUp(sandbox)
    await sandbox.run(['true'])
    const receipt = await sandbox.receipt()
    expect(verifyReceipt(receipt)).toMatchObject({ valid: true })
    expect(receipt.controls.filter(({ subject }) => subject === 'run 5').map(({ verdict }) => verdict)).toEqual(Array.from({ length: 6 }, () => 'proven'))
  })
})
