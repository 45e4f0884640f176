import { spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createPlatform, templateBuilder } from '../../src/compose.js'
import { type BuildEvent, type BuildPhase, buildPhases, type Recipe } from '../../src/contract/templates.js'
import { Sandbox } from '../../src/index.js'
import { parseUris } from '../../src/templates/build-packages.js'
import { startScript } from '../sys/run-script.js'
import { skipGroup, testUnless } from '../unless.js'
import { busybox } from './busybox.js'
import { whyNotBuilt } from './reachable.js'

const place = mkdtempSync(join(tmpdir(), 'gbx-build-'))
const why = await whyNotBuilt(place)
if (why) console.log(`no template is built by these tests: ${why}`)

const builder = templateBuilder({ templateDir: place })
const platform = createPlatform({ templateDir: place })
const timeout = 180_000

afterAll(async () => {
  await platform[Symbol.asyncDispose]()
  rmSync(place, { recursive: true, force: true })
})

function inStore(part: string): string[] {
  return readdirSync(join(place, part)).sort()
}

/** What a build tells, and what it ends with. */
async function watched(recipe: Recipe, options: { readonly again?: boolean; readonly signal?: AbortSignal; at?: (event: BuildEvent) => void } = {}) {
  const events: BuildEvent[] = []
  const { at, ...rest } = options
  const onEvent = (event: BuildEvent): void => {
    events.push(event)
    at?.(event)
  }
  const result = await builder.build(recipe, { ...rest, onEvent }).catch((error: unknown) => error)
  const phases = events.flatMap((event): BuildPhase[] => (event.type === 'phase' ? [event.phase] : []))
  return { result, phases, events }
}

describe('a build', { timeout }, () => {
  skipGroup(why)

  test('is a root that a sandbox has, with nothing of the machine in it, and a receipt that names it', async () => {
    const { id } = builder.inspect('busybox')
    const sandbox = await Sandbox.create({ template: 'busybox', platform })
    const found = await sandbox.run('busybox ls /usr/bin /etc; busybox cat /etc/passwd; echo $OWN; busybox touch /usr/bin/x')
    expect(found.stdout.split('\n')).toEqual(expect.arrayContaining(['busybox', 'sh', 'passwd', 'yes', 'user:x:1000:1000:user:/home/user:/bin/sh']))
    expect([found.exitCode, found.stderr]).toEqual([1, expect.stringContaining('Read-only file system')])
    expect(existsSync('/usr/bin/python3') && (await sandbox.run(['/usr/bin/python3'])).outcome.kind).not.toBe('exited')
    const receipt = await sandbox.receipt()
    expect([receipt.template, receipt.templateId, (await sandbox.info()).templateId]).toEqual(['busybox', id, id])
    await sandbox.close()
  })

  test('goes through its phases in their order, and tells how far it is', async () => {
    const { phases, events, result } = await watched(busybox, { again: true })
    expect(phases).toEqual(buildPhases.filter((phase) => phase !== 'waiting'))
    expect(result).toMatchObject({ wasThere: false, packages: [{ name: 'busybox-static' }], system: 'unknown', recipe: 'busybox' })
    const fractions = events.flatMap((event) => (event.type === 'progress' && event.phase === 'unpacking' ? [event.fraction] : []))
    expect(fractions.at(-1)).toBe(1)
  })

  test('of the same packages is the same template; unless asked for it is not even built', async () => {
    const { id } = builder.inspect('busybox')
    const again = await watched(busybox, { again: true })
    const kept = await watched(busybox)
    expect([again.result, kept.result]).toMatchObject([
      { id, wasThere: false },
      { id, wasThere: true },
    ])
    expect(kept.phases).not.toContain('unpacking')
    expect([inStore('objects'), inStore('drafts')]).toEqual([[id.slice(7)], []])
  })

  test('uses again what was downloaded; a file that is not what Debian signed is fetched again', async () => {
    const archives = join(place, 'packages', 'cache', 'archives')
    const [name = ''] = readdirSync(archives).filter((each) => each.endsWith('.deb'))
    const file = join(archives, name)
    const before = [statSync(file).ino, statSync(file).mtimeMs]
    await watched(busybox, { again: true })
    expect([statSync(file).ino, statSync(file).mtimeMs]).toEqual(before)
    const whole = readFileSync(file)
    writeFileSync(file, Buffer.alloc(whole.length, 7))
    expect((await watched(busybox, { again: true })).result).toMatchObject({ wasThere: false })
    expect(readFileSync(file).equals(whole)).toBe(true)
  })

  test('mends what was damaged', async () => {
    const { id } = builder.inspect('busybox')
    appendFileSync(join(place, 'objects', id.slice(7), 'root/usr/bin/busybox'), '!')
    expect(await builder.verify('busybox')).toEqual([{ path: 'usr/bin/busybox', what: 'has other content' }])
    await expect(Sandbox.create({ template: 'busybox', platform })).rejects.toMatchObject({ code: 'broken' })
    expect((await watched(busybox)).result).toMatchObject({ id, wasThere: false })
    expect(await builder.verify('busybox')).toEqual([])
  })

  test('whose check fails leaves nothing, and says which', async () => {
    const wrong: Recipe = { ...busybox, name: 'wrong', checks: [['busybox', 'sh', '-c', 'echo no luck >&2; exit 3']] }
    expect((await watched(wrong)).result).toMatchObject({ code: 'broken', message: expect.stringContaining('no luck (exit code 3)') })
    expect([inStore('names'), inStore('drafts'), inStore('objects').length]).toEqual([['busybox'], [], 1])
  })

  test('of a package that there is not says so', async () => {
    const wrong: Recipe = { ...busybox, name: 'wrong', packages: ['busybox-static', 'no-such-package-anywhere'] }
    const { result } = await watched(wrong)
    expect(result).toMatchObject({ code: 'unavailable', message: expect.stringContaining('no-such-package-anywhere') })
  })

  test('that needs more room than there is does not begin', async () => {
    const { result, phases } = await watched({ ...busybox, diskBytes: 2 ** 60 })
    expect([result, phases]).toMatchObject([{ code: 'full', hint: expect.stringContaining('df -h') }, []])
  })
})

describe('a build that does not come to its end', { timeout }, () => {
  skipGroup(why)

  for (const phase of ['lists', 'unpacking', 'finishing', 'hashing', 'checking'] as const) {
    test(`because it is called off while ${phase} leaves nothing but what was downloaded`, async () => {
      const controller = new AbortController()
      const reason = new Error('enough')
      const at = (event: BuildEvent): void => void (event.type === 'phase' && event.phase === phase && controller.abort(reason))
      const { result } = await watched({ ...busybox, name: 'other' }, { again: true, signal: controller.signal, at })
      expect([result, inStore('names'), inStore('drafts'), inStore('objects').length]).toEqual([reason, ['busybox'], [], 1])
    })
  }

  for (const phase of ['downloading', 'unpacking', 'keeping'] as const) {
    test(`because it is killed while ${phase} is not seen, and swept by the next`, async () => {
      const { id } = builder.inspect('busybox')
      const script = await startScript(new URL('programs/build-template.ts', import.meta.url), [place, phase])
      expect(await script.firstLine).toBe(phase)
      script.child.kill('SIGKILL')
      await script.ended
      expect([inStore('names'), inStore('drafts').length, builder.inspect('busybox').id]).toEqual([['busybox'], phase === 'downloading' ? 0 : 1, id])
      expect((await watched(busybox)).result).toMatchObject({ id, wasThere: true })
      expect(inStore('drafts')).toEqual([])
    })
  }

  test('another at the same time waits, says so, and then has what the first built', async () => {
    const [one, other] = await Promise.all([watched(busybox, { again: true }), watched(busybox)])
    expect([one.phases.includes('waiting'), other.phases.includes('waiting')].sort()).toEqual([false, true])
    expect([one.result, other.result]).toMatchObject([{ name: 'busybox' }, { name: 'busybox' }])
  })
})

testUnless(why || (process.getuid?.() !== 0 && 'only root can make a small disk'), { timeout })(
  'a full disk is told, and nothing of the template stays',
  async () => {
    const disk = join(place, 'disk')
    mkdirSync(disk)
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m,mode=0700', 'tmpfs', disk]).status).toBe(0)
    try {
      const small = templateBuilder({ templateDir: disk })
      await expect(small.build({ ...busybox, diskBytes: 0 })).rejects.toMatchObject({ code: 'full' })
      expect([readdirSync(join(disk, 'drafts')), await small.list()]).toEqual([[], []])
    } finally {
      spawnSync('umount', [disk])
    }
  },
)

describe('what apt-get names', () => {
  test('is taken only with its hash', () => {
    const hash = 'ab'.repeat(32)
    expect(parseUris(`Reading…\n'http://x/a_1%3a2-3_all.deb' a_1%3a2-3_all.deb 12 SHA256:${hash}\n`)).toEqual([
      { name: 'a', version: '1:2-3', file: 'a_1%3a2-3_all.deb', size: 12, sha256: hash },
    ])
    for (const line of ["'http://x/a_1_all.deb' a_1_all.deb 12 ", "'http://x/a' a_1_all.deb 12 MD5Sum:00", `'http://x/a' ../a_1_all.deb 12 SHA256:${hash}`])
      expect(() => parseUris(`${line}\n`)).toThrow(expect.objectContaining({ code: 'broken' }))
  })
})
