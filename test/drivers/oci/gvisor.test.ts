import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { programPath } from '../../../src/cell/facts.js'
import { trialPrefix } from '../../../src/drivers/oci/container-trial.js'
import { createGvisorDriver } from '../../../src/drivers/oci/gvisor-driver.js'
import { chooseGvisor } from '../../../src/drivers/oci/gvisor-platform.js'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { statePlace } from '../../../src/sys/places.js'
import { argumentsOf, findProcesses } from '../../../src/sys/processes.js'
import { startScript } from '../../sys/run-script.js'
import { testUnless } from '../../unless.js'
import { openGuest } from '../bwrap/open-guest.js'

const lacking = process.getuid?.() !== 0 ? 'only root can give a cell ids of its own' : programPath('runsc') === undefined && 'runsc is not installed'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-gvisor-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function below(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

/** Groups, bundles and processes that bear an owner's name. */
function leftOf(owner: string): string[] {
  const groups = (path: string): string[] => below(path).flatMap((name) => (name.includes(owner) ? [join(path, name)] : groups(join(path, name))))
  const bundles = below(join(statePlace(), 'bundles')).filter((name) => name.includes(owner))
  const processes = findProcesses((pid) => argumentsOf(pid).some((word) => word.includes(owner)))
  return [...groups('/sys/fs/cgroup'), ...bundles, ...processes.map((pid) => `${pid} ${argumentsOf(pid).join(' ')}`)]
}

/** A runsc that knows what is listed, and does as the script says when it is to run something. */
function pretend(name: string, platforms: string, run: string): string {
  const path = join(folder, name)
  writeFileSync(path, `#!/bin/sh\ncase "$*" in\n*"help platforms"*) echo "${platforms}";;\nflags) echo "  -overlay2";;\n*" run "*) ${run};;\nesac\n`)
  chmodSync(path, 0o755)
  return path
}

describe('the platform', () => {
  testUnless(lacking)('is one on which a program ran, and never kvm', async () => {
    const { platform, flags } = await chooseGvisor(programPath('runsc') as string)
    expect(['systrap', 'ptrace']).toContain(platform)
    expect(flags).toEqual(expect.arrayContaining([`--platform=${platform}`, '--network=none', '--ignore-cgroups']))
    expect(flags.join(' ')).not.toContain('kvm')
  })

  test('that hangs is given up in its time, with whatever it started, and the next is tried', async () => {
    const path = pretend(
      'hanging',
      'kvm ptrace systrap',
      'case "$*" in *platform=ptrace*) echo "runsc version 1";; *) sh -c "while :; do sleep 1; done" "$*" & wait;; esac',
    )
    const startedAt = performance.now()
    expect(await chooseGvisor(path, 500)).toMatchObject({
      platform: 'ptrace',
      flags: ['--platform=ptrace', '--network=none', '--ignore-cgroups', '--overlay2=none'],
    })
    expect(performance.now() - startedAt).toBeLessThan(5000)
    expect(findProcesses((pid) => argumentsOf(pid)[0] === 'sh' && argumentsOf(pid).some((word) => word.includes(trialPrefix)))).toEqual([])
  })

  test('where none works, each is told with its reason', async () => {
    const path = pretend('broken', 'kvm ptrace', 'echo "running container: no luck" >&2; exit 1')
    await expect(chooseGvisor(path)).rejects.toMatchObject({
      code: 'unavailable',
      message: 'runsc: no platform works here (systrap: this runsc does not have it; ptrace: running container: no luck)',
    })
  })
})

describe('a sandbox of gVisor', () => {
  testUnless(lacking, { timeout: 90_000 })(
    'that a killed engine left is known by its bundle, and cleared away by the next, with its sentry and gofer',
    async () => {
      const script = await startScript(new URL('./programs/hold-container.ts', import.meta.url), ['runsc'])
      const { owner } = JSON.parse(await script.firstLine) as { owner: string }
      expect(leftOf(owner).join('\n')).toMatch(/runsc-sandbox[^]*runsc-gofer|runsc-gofer[^]*runsc-sandbox/)
      script.child.kill('SIGKILL')
      await script.ended
      const sweep = async (): Promise<string[]> => {
        await using guest = await openGuest({ driver: createGvisorDriver() })
        expect(await guest.sh('echo here')).toBe('here\n')
        return leftOf(owner)
      }
      await expect.poll(sweep, { timeout: 30_000, interval: 200 }).toEqual([])
    },
  )

  testUnless(lacking)('shows its programs a kernel that is not the host’s, and nothing of its first process', async () => {
    await using guest = await openGuest({ driver: createGvisorDriver() })
    const said = await guest.sh('cat /proc/version; echo /proc/1/*; echo /sys/*; echo /.disk/* /.mounts/* /dev/*; /.glovebox 2>&1 || echo $?')
    expect(said).not.toContain(readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim())
    expect(said.split('\n').slice(1)).toEqual([
      '/proc/1/*',
      '/sys/*',
      '/.disk/* /.mounts/* /dev/fd /dev/full /dev/null /dev/ptmx /dev/pts /dev/random /dev/shm /dev/stderr /dev/stdin /dev/stdout /dev/tty /dev/urandom /dev/zero',
      '/bin/sh: 2: /.glovebox: Permission denied',
      '126',
      '',
    ])
  })

  testUnless(lacking)('has mounts to read, also within its own folders, and no others', async () => {
    const reading = join(folder, 'reading')
    mkdirSync(reading, { mode: 0o755 })
    writeFileSync(join(reading, 'given'), 'given\n')
    const driver = createGvisorDriver()
    const mounts = ['/workspace/in', '/data'].map((target) => ({ source: reading, target, mode: 'ro' as const }))
    await using guest = await openGuest({ driver, spec: { mounts } })
    const said = await guest.sh('cat in/given /data/given; for path in in /data; do touch $path/new 2>/dev/null || echo closed; done; echo /.mounts/*', 'root')
    expect(said).toBe('given\ngiven\nclosed\nclosed\n/.mounts/*\n')
    expect(below(reading)).toEqual(['given'])
    await expect(openGuest({ driver, spec: { mounts: [{ source: reading, target: '/data', mode: 'overlay' }] } })).rejects.toMatchObject({
      code: 'unsupported',
    })
  })

  testUnless(lacking)('that uses up its memory ends, says why, and takes nobody along', async () => {
    await using platform = createPlatform()
    const neighbour = await Sandbox.create({ platform, driver: 'oci:runsc' })
    const sandbox = await Sandbox.create({ platform, driver: 'oci:runsc', limits: { memory: '64m', disk: '2m', cpus: 1 } })
    const greedy = sandbox.run(['python3', '-c', "block = bytearray(b'x') * (400 << 20)"])
    await expect(greedy).rejects.toMatchObject({ code: 'broken', message: expect.stringContaining('its memory was used up') as string })
    expect((await neighbour.run(['echo', 'well'])).stdout).toBe('well\n')
    await neighbour.close()
  })

  testUnless(lacking)('refuses what its kernel does not have, and limits of a single run that nobody could hold', async () => {
    await using platform = createPlatform()
    const of = (spec: object): Promise<Sandbox> => Sandbox.create({ platform, driver: 'oci:runsc', ...spec })
    await expect(of({ root: 'overlay' })).rejects.toMatchObject({ code: 'unsupported' })
    await expect(of({ commands: ['sh'] })).rejects.toMatchObject({ code: 'unsupported' })
    await expect(of({ limits: { cpuTime: '5s' } })).rejects.toMatchObject({ code: 'unsupported' })
    const sandbox = await of({})
    await expect(sandbox.run(['true'], { limits: { memory: '32m' } })).rejects.toMatchObject({ code: 'unsupported' })
    await sandbox.close()
  })

  testUnless(lacking)('has its way out by the proxy, which the host decides about', async () => {
    await using platform = createPlatform()
    const sandbox = await Sandbox.create({ platform, minTier: 'gvisor', network: { allow: ['allowed.example'] } })
    expect((await sandbox.info()).driver).toBe('oci:runsc')
    const script = `import urllib.request, urllib.error
try: urllib.request.urlopen('http://denied.example/')
except urllib.error.HTTPError as e: print(e.code, e.headers['x-glovebox-denied'] is not None)`
    expect((await sandbox.run(['python3', '-c', script])).stdout).toBe('403 True\n')
    await sandbox.close()
  })
})
