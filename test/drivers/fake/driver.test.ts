import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { connectWarden } from '../../../src/channel/index.js'
import { createFakeDriver } from '../../../src/drivers/fake/driver.js'
import { parentOf } from '../../../src/sys/processes.js'
import { anySpec, collect, openWarden } from '../../channel/native-warden.js'

const never = new AbortController().signal
let place: string

beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'glovebox-test-'))
  vi.stubEnv('TMPDIR', place)
})

afterEach(async () => {
  vi.unstubAllEnvs()
  expect(readdirSync(place), 'what is left').toEqual([])
  await rm(place, { recursive: true })
})

describe('the fake driver', () => {
  it('says what it does not do, having tried what it does', async () => {
    const probe = await createFakeDriver().probe()
    expect(probe).toMatchObject({ driver: 'fake', tier: 'none', available: true, obstacles: [], isolates: false, filtersSyscalls: false })
    expect(Object.values(probe.limits).filter(({ enforced }) => enforced)).toEqual([])
    expect([probe.users.user.available, probe.users.root.available]).toEqual([true, false])
  })

  it('refuses a network, as its probe says', async () => {
    const driver = createFakeDriver()
    const { network } = (await driver.probe()).features
    expect(network).toMatchObject({ available: false })
    await expect(driver.open({ ...anySpec, network: { direct: false } }, never)).rejects.toMatchObject({ code: 'unsupported' })
  })

  it.each([
    ['is missing', '/no/such/warden'],
    ['is no warden', '/bin/true'],
  ])('is not available when its warden %s, and probing does not throw', async (_, warden) => {
    const probe = await createFakeDriver({ warden }).probe()
    expect(probe.available).toBe(false)
    expect(probe.obstacles).toHaveLength(1)
    expect(probe.obstacles[0]?.why).not.toBe('')
  })

  it('runs programs as the current user in a folder of their own', async () => {
    await using native = await openWarden()
    const { cell } = native
    expect(cell.users).toEqual([{ name: 'user', uid: process.getuid?.(), gid: process.getgid?.(), home: cell.workdir, capabilities: 0n }])
    expect(statSync(cell.workdir).mode & 0o777).toBe(0o700)
    const run = await native.start(['sh', '-c', 'pwd; id -u; echo made > file; env'])
    const [pwd, uid, ...env] = (await collect(run)).stdout.toString().trim().split('\n')
    expect([pwd, uid]).toEqual([cell.workdir, String(process.getuid?.())])
    expect(env.filter((line) => !/^(PATH|PWD|_|SHLVL|OLDPWD)=/.test(line))).toEqual([])
    expect(existsSync(join(cell.workdir, 'file'))).toBe(true)
  })

  it('close twice is quiet, also at once, and before anyone connected', async () => {
    const cell = await createFakeDriver().open(anySpec, never)
    await Promise.all([cell.close(), cell.close()])
    await cell.close()
    expect(cell.channel.destroyed).toBe(true)
  })

  it('close during a flood leaves nothing', async () => {
    const native = await openWarden()
    await native.start(['sh', '-c', 'yes & yes >&2 & exec yes'])
    await native.cell.close()
    expect((await native.warden.ended)?.code).toBe('broken')
  })

  it('closes over a warden that was stopped, as any program here can do', async () => {
    const native = await openWarden()
    const run = await native.start(['sleep', '100'])
    const keeper = parentOf(run.pid)
    process.kill(parentOf(keeper), 'SIGSTOP')
    await native.cell.close()
    expect(existsSync(`/proc/${run.pid}`)).toBe(false)
  })

  it('removes what programs left, however deep and closed it is', async () => {
    await using native = await openWarden()
    const dig = 'for (let depth = 0; depth < 100; depth += 1) { fs.mkdirSync("d".repeat(200)); process.chdir("d".repeat(200)) }'
    const litter =
      'mkdir -p closed/in/there && touch closed/in/file && chmod 000 closed/in closed && ln -s / link && mkfifo pipe && : > "$(printf "\\377\\n.")"'
    const run = await native.start(['sh', '-c', `${litter} && exec "$0" -e '${dig}'`, process.execPath])
    const { stderr } = await collect(run)
    expect([stderr.toString(), (await run.exited).code]).toEqual(['', 0])
  })

  it('rejects with the reason of the signal', async () => {
    await expect(createFakeDriver().open(anySpec, AbortSignal.abort('no'))).rejects.toBe('no')
    const controller = new AbortController()
    const opening = createFakeDriver().open(anySpec, controller.signal)
    controller.abort('changed my mind')
    await expect(opening).rejects.toBe('changed my mind')
  })

  it('tells why the warden did not come up', async () => {
    mkdirSync(join(place, 'file'))
    const cell = await createFakeDriver({ warden: '/bin/ls' }).open(anySpec, never)
    await expect(connectWarden(cell.channel, {})).rejects.toMatchObject({ code: 'broken' })
    await cell.close()
    expect(cell.diagnosis()).toMatch(/subreaper/)
    await rm(join(place, 'file'), { recursive: true })
  })
})
