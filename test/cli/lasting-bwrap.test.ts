import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Account, accounts, makeOwn } from './accounts.js'
import { type CliResult, cliPath, collect, parseAs } from './cli.js'
import { gone, until } from './lasting.js'
import { isBwrapReady } from './machine.js'

let top: string

beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), 'glovebox-lasting-'))
  chmodSync(top, 0o755)
})
afterEach(() => rmSync(top, { recursive: true, force: true }))

const envOf = () => ({
  ...process.env,
  HOME: join(top, 'home'),
  XDG_RUNTIME_DIR: join(top, 'run'),
  GLOVEBOX_SNAPSHOT_DIR: join(top, 'snapshots'),
  GLOVEBOX_DAEMON_IDLE: '1s',
  NO_COLOR: '1',
})

function glovebox({ wrapper }: Account, args: readonly string[], input = ''): Promise<CliResult> {
  const [file = '', ...rest] = [...wrapper, process.execPath, cliPath, ...args]
  const child = spawn(file, rest, { cwd: top, env: envOf() })
  child.stdin.end(input)
  return collect(child)
}

/** The daemon of this account that was started from here. */
function daemonOf({ uid }: Account): { readonly pid: number; readonly owner: string; readonly files: readonly string[] } | undefined {
  const folder = join(uid === 0 ? '/run/glovebox' : join(top, 'run/glovebox'), 'daemon')
  for (const name of existsSync(folder) ? readdirSync(folder).filter((each) => each.endsWith('.json')) : []) {
    const { owner } = parseAs<{ owner: string }>(readFileSync(join(folder, name), 'utf8'))
    const pid = Number(owner.split('.')[0])
    if (existsSync(`/proc/${pid}/environ`) && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(top)) {
      const record = join(folder, name)
      return { pid, owner, files: [record, record.replace(/json$/, 'sock')] }
    }
  }
  return undefined
}

function found(place: string, name: string): string[] {
  return spawnSync('find', [place, '-name', `*${name}*`], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter(Boolean)
}

describe.skipIf(!isBwrapReady).each(accounts)('real cells of $name', (account) => {
  beforeEach(() => makeOwn(account, top, ['home', 'run', 'snapshots']))

  test('last: files, processes, a snapshot and a fork; and the daemon goes with the last of them', async () => {
    const { stdout, code, stderr } = await glovebox(account, ['create', '-q', '--name', 'box'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const pid = daemonOf(account)?.pid ?? 0
    expect(readFileSync(`/proc/${pid}/status`, 'latin1')).toContain(`Uid:\t${account.uid}\t`)
    expect((await glovebox(account, ['cp', '-', 'box:in'], 'piped')).code).toBe(0)
    expect((await glovebox(account, ['exec', 'box', '--', 'sh', '-c', 'cat in; id -un; cat /etc/shadow'])).stdout).toBe('pipeduser\n')
    expect((await glovebox(account, ['exec', '-d', '--tag', 'w', 'box', '--', 'sh', '-c', 'echo left; sleep 600'])).code).toBe(0)
    await until(async () => (await glovebox(account, ['logs', 'box', 'w'])).stdout === 'left\n', 'its line')
    const fork = (await glovebox(account, ['fork', 'box'])).stdout.trim()
    expect((await glovebox(account, ['exec', fork, '--', 'cat', 'in'])).stdout).toBe('piped')
    const { usage } = parseAs<{ usage: { processes: number | null } }>((await glovebox(account, ['info', '--json', stdout.trim()])).stdout)
    expect(usage.processes ?? 2).toBeGreaterThanOrEqual(1)
    expect((await glovebox(account, ['rm', '--all'])).code).toBe(0)
    await gone(pid)
    expect(daemonOf(account)).toBeUndefined()
  })

  test('killed with their daemon leave no process, mount, cgroup, id, socket or file after the next command', async () => {
    for (const name of ['one', 'two']) await glovebox(account, ['create', '-q', '--name', name])
    const daemon = daemonOf(account)
    if (!daemon) throw new Error('there is no daemon')
    const marker = `71.${process.pid}${account.uid}`
    for (const name of ['one', 'two']) await glovebox(account, ['exec', '-d', name, '--', 'sleep', marker])
    const cells = (await glovebox(account, ['ls', '-q'])).stdout.trim().split('\n')
    const mounts = readFileSync('/proc/self/mountinfo', 'latin1').split('\n').length
    process.kill(daemon.pid, 'SIGKILL')
    await gone(daemon.pid)
    const { stderr } = await glovebox(account, ['ls'])
    expect(stderr).toMatch(/was ended from outside/)
    const state = account.uid === 0 ? '/run/glovebox' : join(top, 'run')
    const leftovers = (): string[] => [
      ...found(state, daemon.owner),
      ...cells.flatMap((id) => [...found(state, id), ...found('/sys/fs/cgroup', id)]),
      ...found('/sys/fs/cgroup', daemon.owner),
      ...spawnSync('pgrep', ['-f', marker], { encoding: 'utf8' }).stdout.split('\n').filter(Boolean),
      ...daemon.files.filter((path) => existsSync(path)),
    ]
    await until(() => leftovers().length === 0, `nothing left: ${leftovers().join(' ')}`)
    expect(readFileSync('/proc/self/mountinfo', 'latin1').split('\n').length).toBe(mounts)
  })
})

describe.skipIf(process.getuid?.() !== 0 || !isBwrapReady)('where there is no room', () => {
  const ordinary = accounts.find(({ uid }) => uid !== 0)

  test('a daemon that cannot write its record does not start, says why, and leaves nothing', async () => {
    if (!ordinary) throw new Error('there is no ordinary user')
    makeOwn(ordinary, top, ['home', 'run', 'snapshots'])
    const run = join(top, 'run')
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', `size=64k,nr_inodes=64,uid=${ordinary.uid},gid=${ordinary.uid},mode=700`, 'tmpfs', run]).status).toBe(0)
    try {
      mkdirSync(join(run, 'glovebox'), { mode: 0o700 })
      chownSync(join(run, 'glovebox'), ordinary.uid, ordinary.uid)
      // All of its room, and its last byte.
      expect(() => writeFileSync(join(run, 'full'), Buffer.alloc(2 ** 20))).toThrow(/ENOSPC/)
      const { code, stdout, stderr } = await glovebox(ordinary, ['create', '-q'])
      expect({ code, stdout }).toEqual({ code: 125, stdout: '' })
      expect(stderr).toMatch(/no space left|ENOSPC/)
      expect(daemonOf(ordinary)).toBeUndefined()
      rmSync(join(run, 'full'))
      expect((await glovebox(ordinary, ['create', '-q'])).code).toBe(0)
      const pid = daemonOf(ordinary)?.pid ?? 0
      await glovebox(ordinary, ['rm', '--all'])
      await gone(pid)
    } finally {
      spawnSync('umount', [run])
    }
  })
})
