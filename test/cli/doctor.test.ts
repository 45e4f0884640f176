import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import type { Probe } from '../../src/contract/driver.js'
import { cli, cliPath, parseAs } from './cli.js'
import { isBwrapReady } from './machine.js'
import { testUnless } from '../unless.js'

interface DoctorReport {
  readonly version: string
  readonly host: unknown
  readonly ready: boolean
  readonly drivers: readonly Probe[]
}

test('--json is one object: version, host, whether it is ready, and each driver as its probe says', async () => {
  const { code, stdout, stderr } = await cli(['doctor', '--json'])
  const report = parseAs<DoctorReport>(stdout)
  expect({ code, stderr, keys: Object.keys(report) }).toEqual({
    code: report.ready ? 0 : 125,
    stderr: '',
    keys: ['version', 'host', 'ready', 'drivers', 'templates'],
  })
  expect(report.drivers.map((probe) => probe.driver)).toEqual(expect.arrayContaining(['bwrap', 'fake']))
  for (const probe of report.drivers) {
    expect(Object.keys(probe.limits).sort()).toEqual([
      'cpuTime',
      'cpus',
      'disk',
      'fileSize',
      'inodes',
      'memory',
      'openFiles',
      'processes',
      'readRate',
      'writeRate',
    ])
    expect(probe.obstacles.length === 0).toBe(probe.available)
  }
})

test('a driver that isolates nothing does not make a machine ready', async () => {
  const { stdout } = await cli(['doctor', '--json'])
  const report = parseAs<DoctorReport>(stdout)
  const isolating = report.drivers.filter((probe) => probe.available && probe.isolates)
  expect(report.ready).toBe(isolating.length > 0)
})

testUnless(!isBwrapReady && 'bwrap is not ready here: ./glovebox doctor')(
  'without any runtime it says what is in the way, how to remove it, and ends with 125',
  () => {
    // In a mount namespace of its own, where each runtime is covered by something that nobody can execute.
    const asRoot = process.getuid?.() === 0 ? [] : ['--map-root-user']
    const script = 'for name in bwrap crun runc runsc; do test ! -e /usr/bin/$name || mount --bind /dev/null /usr/bin/$name || exit 9; done; exec "$@"'
    const { status, stdout } = spawnSync('unshare', [...asRoot, '--mount', 'sh', '-c', script, 'sh', process.execPath, cliPath, 'doctor'], { encoding: 'utf8' })
    expect(status).toBe(125)
    expect(stdout).toMatch(/bwrap {2}tier process, not available\n {2}✗ .+\n {4}(.+\n {4})*hint: .*bubblewrap/)
    expect(stdout).toMatch(/oci:runsc {2}tier gvisor, not available\n {2}✗ no runsc: .+\n {4}(.+\n {4})*hint: .*runsc\n/)
    for (const name of ['krun', 'kata']) expect(stdout).toMatch(new RegExp(`oci:${name} {2}tier vm, not available\\n {2}✗ no ${name}: `))
    expect(stdout).toContain('No sandbox can be made here')
  },
)

test('the table for people names every limit, has no colours in a pipe and stays within 80 columns', async () => {
  const { stdout, stderr } = await cli(['doctor'])
  expect(stderr).toBe('')
  for (const word of ['memory', 'cpus', 'disk', 'processes', 'time', 'output', 'syscalls', 'user root', 'commands', 'mounts ro', 'mounts rw', 'root overlay'])
    expect(stdout).toContain(`  ${word}`)
  expect(stdout).not.toContain('\u001b')
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
})

test('a policy of the operator that cannot be read is an obstacle beside what the machine can do', async () => {
  const env = { GLOVEBOX_POLICY: '/no/such/policy.json' }
  const { code, stdout, stderr } = await cli(['doctor'], { env })
  expect({ code, stderr }).toEqual({ code: 125, stderr: '' })
  expect(stdout.replace(/\s+/g, ' ')).toContain('✗ GLOVEBOX_POLICY: /no/such/policy.json: cannot be read as a policy: there is no such file')
  expect(stdout).toContain('hint: ls -l /no/such/policy.json\n')
  expect(stdout).toMatch(/^bwrap {2}tier process, /m)
  expect(stdout).toContain('No sandbox can be made here: an obstacle above is in the way.\n')
  const report = parseAs<DoctorReport & { obstacles: readonly { what: string }[] }>((await cli(['doctor', '--json'], { env })).stdout)
  expect({ ready: report.ready, obstacles: report.obstacles.map(({ what }) => what) }).toEqual({ ready: false, obstacles: ['GLOVEBOX_POLICY'] })
})
