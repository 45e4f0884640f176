/** Containers by the command line, as root and as an ordinary user. */
import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { programPath } from '../../src/cell/facts.js'
import type { Probe } from '../../src/contract/driver.js'
import { testUnless } from '../unless.js'
import { accounts, gloveboxAs, makeOwn } from './accounts.js'
import { parseAs } from './cli.js'

const lacking = ['runc', 'crun'].some((name) => programPath(name) === undefined) && 'runc and crun are not both installed'
let top: string

describe.each(accounts)('as $name', (account) => {
  beforeEach(() => {
    top = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-containers-')))
    chmodSync(top, 0o755)
    makeOwn(account, top, ['home', 'changes'])
  })
  afterEach(() => rmSync(top, { recursive: true, force: true }))
  const glovebox = (...args: string[]) => gloveboxAs(account, args, { top, cwd: '/' })

  testUnless(lacking, { timeout: 60_000 })('doctor says that both runtimes are ready, and what they can enforce', async () => {
    const { drivers } = parseAs<{ drivers: Probe[] }>((await glovebox('doctor', '--json')).stdout)
    const found = drivers.filter(({ driver }) => ['oci:crun', 'oci:runc'].includes(driver))
    expect(found.map(({ driver, available, tier, obstacles }) => ({ driver, available, tier, obstacles }))).toEqual([
      { driver: 'oci:crun', available: true, tier: 'container', obstacles: [] },
      { driver: 'oci:runc', available: true, tier: 'container', obstacles: [] },
    ])
    expect(found.map(({ users }) => users.root.available)).toEqual([account.uid === 0, account.uid === 0])
  })

  for (const flags of [
    ['--driver', 'oci'],
    ['--driver', 'oci:runc'],
    ['--min-tier', 'container'],
  ]) {
    testUnless(lacking, { timeout: 60_000 })(`run ${flags.join(' ')} runs in a container, and says in which`, async () => {
      const { stdout } = await glovebox('run', '--json', ...flags, '--', 'sh', '-c', 'id -u; cat /proc/1/comm')
      expect(parseAs<object>(stdout)).toMatchObject({
        outcome: { kind: 'exited', code: 0 },
        stdout: '1000\nwarden\n',
        driver: flags[1] === 'oci:runc' ? 'oci:runc' : 'oci:crun',
        tier: 'container',
      })
    })
  }
})
