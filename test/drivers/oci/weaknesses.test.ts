/** What runtimes got wrong over the years, held whatever their version: links at mount points, masks that are something else, descriptors that stay open. */
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from 'vitest'
import { findFirstProcess } from '../../../src/cell/first-process.js'
import { programPath } from '../../../src/cell/facts.js'
import { engineOptions } from '../../../src/compose.js'
import type { TemplateRoot } from '../../../src/contract/driver.js'
import type { SandboxInfo } from '../../../src/contract/platform.js'
import { createOciDriver } from '../../../src/drivers/oci/driver.js'
import { type RuntimeName, runtimeNames, runtimes } from '../../../src/drivers/oci/runtimes.js'
import { Engine } from '../../../src/engine/engine.js'
import { detectCgroups } from '../../../src/sys/cgroups.js'
import { childrenOf, descendantsOf } from '../../../src/sys/posture/process-tree.js'
import { createHostTemplates } from '../../../src/templates/host.js'
import { startScript } from '../../sys/run-script.js'
import { testUnless } from '../../unless.js'
import { openGuest } from '../bwrap/open-guest.js'
import { type Lie, lyingRuntime } from './lying-runtime.js'

const isRoot = process.getuid?.() === 0
const ownerId = 4242
const ordinaryId = 65_534

function lacking(name: RuntimeName): string | false {
  return programPath(name) === undefined && `${name} is not installed`
}

describe.each(runtimeNames.filter((name) => runtimes[name].isRootless))('with %s', (name) => {
  let place: string
  let outside: string
  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), 'gbx-links-'))
    outside = join(place, 'outside')
    for (const folder of ['outside', 'work', 'second', 'home', 'var']) mkdirSync(join(place, folder))
    // What belongs to root is not mounted to be written to.
    if (isRoot) for (const folder of ['outside', 'work']) chownSync(join(place, folder), ownerId, ownerId)
  })
  afterEach(() => rmSync(place, { recursive: true, force: true }))
  const open = (spec: object, root?: TemplateRoot) => openGuest({ driver: createOciDriver(name), spec, ...(root && { root }) })
  const work = () => ({ source: join(place, 'work'), target: '/workspace', mode: 'rw' }) as const
  const second = (target: string) => ({ source: join(place, 'second'), target, mode: 'ro' }) as const

  testUnless(lacking(name))('a link that a guest left where the next start mounts is not followed, and nothing is made where it leads', async () => {
    {
      await using guest = await open({ mounts: [work()] })
      expect(await guest.sh(`ln -s ${outside} /workspace/link && mkdir /workspace/plain && ls /workspace`)).toBe('link\nplain\n')
    }
    for (const target of ['/workspace/link', '/workspace/link/below'])
      await expect(open({ mounts: [work(), second(target)] })).rejects.toMatchObject({
        code: expect.stringMatching(/^(invalid|broken|unavailable)$/) as string,
      })
    expect(readdirSync(outside)).toEqual([])
  })

  testUnless(lacking(name))('without a link in the way the same mounts are there: the control', async () => {
    mkdirSync(join(place, 'work/plain'))
    if (isRoot) chownSync(join(place, 'work/plain'), ownerId, ownerId)
    writeFileSync(join(place, 'second/file'), 'here\n')
    await using guest = await open({ mounts: [work(), second('/workspace/plain')] })
    expect(await guest.sh('cat /workspace/plain/file')).toBe('here\n')
  })

  /** The template of this host, with another folder or link in it. */
  const template = async (other: Partial<Pick<TemplateRoot, 'binds' | 'symlinks'>>): Promise<TemplateRoot> => {
    const host = await createHostTemplates().resolve('host')
    return { ...host, binds: [...host.binds, ...(other.binds ?? [])], symlinks: [...host.symlinks, ...(other.symlinks ?? [])] }
  }

  testUnless(lacking(name))('a link in a template where a cell has its own folders opens no cell, and nothing is made where it leads', async () => {
    symlinkSync(outside, join(place, 'home/user'))
    symlinkSync(outside, join(place, 'var/tmp'))
    for (const folder of ['home', 'var']) {
      const root = await template({ binds: [{ source: join(place, folder), target: `/${folder}` }] })
      await expect(open({}, root)).rejects.toMatchObject({ code: expect.stringMatching(/^(broken|unavailable)$/) as string })
    }
    expect(readdirSync(outside)).toEqual([])
  })

  const platformWith = (runtime: string | undefined, root?: TemplateRoot): Engine => {
    const driver = createOciDriver(name, runtime === undefined ? {} : { programs: { runtime } })
    const templates = createHostTemplates()
    const given = root ? { ...templates, resolve: () => Promise.resolve(root) } : templates
    return new Engine({ ...engineOptions({ drivers: [driver] }), templates: given })
  }

  testUnless(lacking(name))('a link in a template at /proc or /dev hands out no cell', async () => {
    for (const path of ['/proc', '/dev']) {
      await using platform = platformWith(undefined, await template({ symlinks: [{ path, target: '/usr' }] }))
      await expect(platform.create({})).rejects.toMatchObject({ code: expect.stringMatching(/^(not-enforced|broken|unavailable)$/) as string })
    }
  })

  /** With root the runtime makes the cell, so that its lies are seen and the cell is not handed out; without, it makes the container around, and the cell has nothing of it. */
  const lies: readonly [string, Lie][] = [
    ['shows a folder of the host’s besides', { config: 's#"mounts":\\[#&{"destination":"/.extra","type":"bind","source":"/etc","options":["rbind"]},#' }],
    ['leaves the network of the host', { config: 's#{"type":"network"},##' }],
    ['gives more rights than it was told', { config: 's#"bounding":\\[#&"CAP_SYS_PTRACE","CAP_NET_RAW",#' }],
    ['takes the host’s own place for ipc', { config: 's#{"type":"ipc"},##' }],
  ]
  for (const [what, lie] of lies) {
    testUnless(lacking(name))(`a runtime that ${what} ${isRoot ? 'hands out no cell' : 'gives the cell nothing of that'}`, async () => {
      const runtime = lyingRuntime(name, lie, join(place, 'runtime'))
      await using platform = platformWith(runtime)
      if (isRoot) return void (await expect(platform.create({})).rejects.toMatchObject({ code: 'not-enforced' }))
      await using guest = await openGuest({ driver: createOciDriver(name, { programs: { runtime } }) })
      const [posture] = await guest.cell.posture({ kind: 'cell' })
      const found = posture?.observations.map(({ control, value }) => ({ control, value }))
      expect(found).toEqual(expect.arrayContaining(guest.cell.expects.map(({ control, value }) => ({ control, value }))))
    })
  }

  testUnless(lacking(name))('a /dev/null that was swapped for a link masks nothing: no cell opens', async () => {
    const device = isRoot ? '/tmp/dev/null' : '/tmp/.root/dev/null'
    const before = `${isRoot ? `rm ${device}` : `umount ${device} && rm ${device}`} && ln -s /proc/uptime ${device}`
    const driver = createOciDriver(name, { programs: { runtime: lyingRuntime(name, { before }, join(place, 'runtime')) } })
    await expect(openGuest({ driver })).rejects.toMatchObject({ message: expect.stringMatching(/\/dev\/null/) as string })
  })

  testUnless(lacking(name))('a runtime that lies about nothing opens a cell: the control', async () => {
    await using platform = platformWith(lyingRuntime(name, {}, join(place, 'runtime')))
    await expect(platform.create({})).resolves.toMatchObject({ driver: `oci:${name}` })
  })
})

describe('a warden of runc’s that is to enter the groups of its cell', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gbx-outside-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))
  const lackingGroups = (): string | false => {
    const cgroups = detectCgroups()
    if ('unavailable' in cgroups || !isRoot) return 'no groups of its own here'
    return lacking('runc') || (!existsSync('/sys/fs/cgroup/memory') && 'whoever starts it puts it there')
  }
  const driverWith = (config: string) => createOciDriver('runc', { programs: { runtime: lyingRuntime('runc', { config }, folder) } })
  const createWith = async (config: string): Promise<SandboxInfo> => {
    await using platform = new Engine({ ...engineOptions({ drivers: [driverWith(config)] }) })
    return await platform.create({})
  }

  testUnless(lackingGroups())('hands out no cell where it stays outside of all of them', async () => {
    await expect(createWith('s#,"--enter","[0-9]*"##g')).rejects.toMatchObject({ code: 'not-enforced' })
  })

  testUnless(lackingGroups())('hands out no cell where it stays outside of one of them', async () => {
    await expect(createWith('s#,"--enter","[0-9]*"##')).rejects.toMatchObject({ code: 'not-enforced', message: expect.stringMatching(/not in \//) as string })
  })

  testUnless(lackingGroups())('opens no cell where it cannot enter one', async () => {
    const opening = openGuest({ driver: driverWith('s#,"--enter","[0-9]*"#,"--enter","200"#') })
    await expect(opening).rejects.toMatchObject({ message: expect.stringMatching(/warden: enter a group of the cell: Bad file descriptor/) as string })
  })

  testUnless(lackingGroups())('has made its namespace of them once it was in, so that nobody sees where they lie: the control', async () => {
    await using guest = await openGuest({ driver: driverWith('') })
    expect(await guest.sh('cut -d: -f3 /proc/1/cgroup | sort -u')).toBe('/\n')
  })
})

describe('a runtime that leaks a folder of the host’s', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync('/tmp/gbx-leaky-')
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const linksOf = (pid: number): string[] => readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))

  testUnless(lacking('runc'))('leaks it to no program', async () => {
    const runtime = lyingRuntime('runc', { leaks: '/' }, join(folder, 'own'))
    await using guest = await openGuest({ driver: createOciDriver('runc', { programs: { runtime } }) })
    expect(await guest.sh('ls /proc/self/fd | wc -l')).toBe('4\n')
    if (!isRoot) return
    const warden = childrenOf(process.pid).flatMap((pid) => findFirstProcess(pid) ?? [])
    expect(warden.flatMap(linksOf)).not.toContain('/')
    expect(warden).not.toEqual([])
  })

  testUnless(lacking('runc') || (!isRoot && 'only root can look at the descriptors of a first process'), { timeout: 60_000 })(
    'leaks it to nobody of an ordinary user’s container',
    async () => {
      const home = join(folder, 'home')
      mkdirSync(home)
      chownSync(home, ordinaryId, ordinaryId)
      chmodSync(folder, 0o755)
      const runtime = lyingRuntime('runc', { leaks: '/' }, join(folder, 'ordinary'))
      const wrapper = ['setpriv', '--reuid', `${ordinaryId}`, '--regid', `${ordinaryId}`, '--clear-groups', 'env', '-u', 'XDG_RUNTIME_DIR', `HOME=${home}`]
      const script = await startScript(new URL('./programs/hold-container.ts', import.meta.url), ['runc', runtime], wrapper)
      await script.firstLine
      const monitors = childrenOf(script.child.pid ?? 0)
      const wardens = monitors.flatMap((pid) => findFirstProcess(pid, { isWithin: true }) ?? [])
      expect(wardens).toHaveLength(1)
      expect(monitors.flatMap((pid) => [...descendantsOf(pid)]).flatMap(linksOf)).not.toContain('/')
      script.child.kill('SIGKILL')
      await script.ended
    },
  )
})
