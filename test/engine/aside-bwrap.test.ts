import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Driver, Probe } from '../../src/contract/driver.js'
import type { SpecInput } from '../../src/contract/spec.js'
import { Engine } from '../../src/engine/engine.js'
import { verifyReceipt } from '../../src/receipt/index.js'
import { descendantsOf } from '../../src/sys/posture/process-tree.js'
import { plantedDriver } from '../drivers/bwrap/planted-drivers.js'
import { listen } from './aside-said.js'
import { collect, rejectionOf } from './collect.js'
import { waitUntil } from './processes.js'

let engine: Engine
let probe: Probe
let place: string

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), 'gbx-aside-'))
  chmodSync(place, 0o755)
  const platform = createPlatform({ snapshotDir: join(place, 'snapshots') })
  if (!(platform instanceof Engine)) throw new Error('the platform is no engine')
  engine = platform
  const found = (await platform.probe()).find(({ driver }) => driver === 'bwrap')
  if (!found?.available) throw new Error(`bwrap is not available here: ${JSON.stringify(found?.obstacles)}`)
  probe = found
})
afterAll(async () => {
  await engine[Symbol.asyncDispose]()
  rmSync(place, { recursive: true, force: true })
})

async function inSandbox(spec: SpecInput, act: (id: string) => Promise<void>): Promise<void> {
  const { id } = await engine.create(spec)
  try {
    await act(id)
  } finally {
    await engine.close(id)
  }
}

const python = (source: string): { readonly command: string[] } => ({ command: ['/usr/bin/python3', '-c', `import os, sys\n${source}`] })
const bytes = (text: string): Buffer => Buffer.from(text)

const openOnes = `
def there(fd):
    try: os.fstat(fd); return True
    except OSError: return False
print([fd for fd in range(1024) if there(fd)], os.readlink("/proc/self/fd/0"))`

describe('a program with an aside', () => {
  test('hears on 3 and answers on 4, beside what it prints, and ends as any other', async () => {
    await inSandbox({}, async (id) => {
      const program = await engine.startAside(
        id,
        python('asked = os.read(3, 100)\nprint("out")\nprint("err", file=sys.stderr)\nos.write(4, asked.upper())\nsys.exit(5)'),
      )
      const { said, over } = listen(program)
      expect(program.pid).toBeGreaterThan(1)
      await program.write(bytes('what?'))
      await over
      const { outcome, usage } = await program.ended
      expect(said).toEqual({ stdout: 'out\n', stderr: 'err\n', aside: 'WHAT?' })
      expect([outcome, usage.outputBytes]).toEqual([{ kind: 'exited', code: 5 }, 8])
      expect(await rejectionOf(program.write(bytes('more')))).toMatchObject({ code: 'conflict' })
    })
  })

  test.for(['user', 'root'] as const)('has 0 to 4 open and nothing else, as %s, the first of its kind and the next', async (user, { skip }) => {
    const told = probe.users[user]
    if (!told.available) skip(told.why)
    await inSandbox({}, async (id) => {
      for (let each = 0; each < 3; each += 1) {
        const { said, over } = listen(await engine.startAside(id, { ...python(openOnes), user }))
        await over
        expect(said.stdout).toBe('[0, 1, 2, 3, 4] /dev/null\n')
      }
    })
  })

  test('is a run of the receipt, of its own group and of the usage', async () => {
    await inSandbox({}, async (id) => {
      await collect(await engine.start(id, { command: 'true' }))
      const program = await engine.startAside(id, { ...python('os.write(4, b"x" * 1000)\nprint("12345", flush=True)\nos.read(3, 1)'), tag: 'kernel' })
      const { said, over } = listen(program)
      await waitUntil(() => said.aside.length === 1000 && said.stdout.length === 6)
      const receipt = await engine.receipt(id)
      expect(verifyReceipt(receipt)).toMatchObject({ valid: true })
      const { runs } = receipt
      expect(runs.map(({ posture, outcome }) => [posture, outcome?.kind])).toEqual([
        ['full', 'exited'],
        ['full', undefined],
      ])
      expect(await engine.processes.list(id)).toEqual([expect.objectContaining({ pid: program.pid, tag: 'kernel', state: expect.any(String) as unknown })])
      await program.endInput()
      await over
      const { usage } = await program.ended
      expect([usage.outputBytes, (await engine.usage(id)).runs]).toEqual([6, 2])
    })
  })

  test('is held to the processor time of a run, and to its memory where that is counted', async ({ skip }) => {
    const { cpuTime, memory } = probe.limits
    if (!cpuTime.enforced) skip(cpuTime.why)
    await inSandbox({}, async (id) => {
      const busy = await engine.startAside(id, { ...python('os.write(4, b"on")\nwhile True: pass'), limits: { cpuTime: 300 } })
      const heard = listen(busy)
      await heard.over
      expect([heard.said.aside, (await busy.ended).outcome]).toEqual(['on', { kind: 'timed-out', by: 'cpu', limitMs: 300 }])
      if (!memory.enforced) skip(memory.why)
      const large = await engine.startAside(id, { ...python('os.write(4, b"on")\nx = b"x" * (1 << 30)'), limits: { memory: '64m' } })
      await listen(large).over
      expect((await large.ended).outcome.kind).toBe('out-of-memory')
    })
  })

  test('stands still at a pause and at a snapshot, and goes on where it was', async ({ skip }) => {
    const { pause } = probe.features
    if (!pause.available) skip(pause.why)
    await inSandbox({}, async (id) => {
      const counter = await engine.startAside(id, python('import time\nn = 0\nwhile True:\n  n += 1\n  os.write(4, b"%d\\n" % n)\n  time.sleep(0.005)'))
      const { said, over } = listen(counter)
      await waitUntil(() => said.aside.length > 20)
      await engine.life.pause(id)
      const { cpuMs } = await engine.usage(id)
      // What was in its pipe when it was stopped is still on its way.
      await new Promise((resolve) => setTimeout(resolve, 300))
      const before = said.aside
      await new Promise((resolve) => setTimeout(resolve, 500))
      expect([said.aside === before, (await engine.usage(id)).cpuMs]).toEqual([true, cpuMs])
      await engine.life.resume(id)
      await waitUntil(() => said.aside.length > before.length + 20)
      await engine.snapshots.take(id)
      const after = said.aside.length
      await waitUntil(() => said.aside.length > after + 20)
      await counter.kill('enough')
      await over
      const lines = said.aside.split('\n').slice(0, -1)
      expect(lines.findIndex((line, index) => line !== `${index + 1}`)).toBe(-1)
      expect((await counter.ended).outcome).toEqual({ kind: 'killed', reason: 'enough' })
    })
  })

  test('ends when its sandbox is paused without its memory, and that is told', async ({ skip }) => {
    const { pause } = probe.features
    if (!pause.available) skip(pause.why)
    await inSandbox({}, async (id) => {
      const program = await engine.startAside(id, python('os.write(4, b"x" * 3000000)'))
      await engine.life.pause(id, { memory: false })
      expect(['killed', 'exited']).toContain((await program.ended).outcome.kind)
      await engine.life.resume(id)
      const { said, over } = listen(await engine.startAside(id, python('os.write(4, b"again")')))
      await over
      expect(said.aside).toBe('again')
    })
  })

  test('leaves nothing behind when its sandbox is closed, whatever it started', async () => {
    const { id } = await engine.create({})
    const program = await engine.startAside(id, { command: 'setsid sleep 1000 & trap "" TERM INT HUP; echo up >&4; while :; do sleep 1; done' })
    const { said, over } = listen(program)
    await waitUntil(() => said.aside === 'up\n')
    const cell = descendantsOf(process.pid)
    await engine.close(id)
    expect(await rejectionOf(over)).toMatchObject({ code: 'closed' })
    await waitUntil(() => descendantsOf(process.pid).every((pid) => !cell.includes(pid)))
  })
})

describe('a mistake in what is open to programs', () => {
  const plants: Readonly<
    Record<string, { readonly passage: string; readonly instead: string; readonly plain: RegExp | undefined; readonly aside: RegExp | undefined }>
  > = {
    'one descriptor too many': {
      passage: '  load_filter(child);\n',
      instead: '  if (dup(1) < 0) fail(child, "leak", "a descriptor");\n  load_filter(child);\n',
      plain: /has \d+ besides/,
      aside: /has \d+ besides/,
    },
    'an aside that lacks its output': {
      passage: '  obey_rules(child);\n',
      instead: '  if (child->start->aside) close(ASIDE_OUT_FD);\n  obey_rules(child);\n',
      plain: undefined,
      aside: /lacks 4/,
    },
    'the ends of an aside open to a program without one': {
      passage: '  obey_rules(child);\n',
      instead:
        '  if (!child->start->aside) make_way(child);\n  if (!child->start->aside && (dup2(1, ASIDE_IN_FD) < 0 || dup2(1, ASIDE_OUT_FD) < 0)) fail(child, "leak", "descriptors");\n  obey_rules(child);\n',
      plain: /has 3 besides; has 4 besides/,
      aside: undefined,
    },
  }

  /** Why it did not run; undefined when it did. */
  async function refusalOf(driver: Driver, start: (engine: Engine, id: string) => Promise<AsyncIterable<unknown>>): Promise<string | undefined> {
    const platform = createPlatform({ drivers: [driver] }) as Engine
    try {
      const { id } = await platform.create({})
      for await (const _ of await start(platform, id));
      return undefined
    } catch (error) {
      expect(error).toMatchObject({ code: 'not-enforced' })
      return (error as Error).message
    } finally {
      await platform[Symbol.asyncDispose]()
    }
  }

  test.each(Object.entries(plants))('is found at the gate: %s', { timeout: 360_000 }, async (name, { passage, instead, plain, aside }) => {
    const driver = await plantedDriver({ warden: { file: 'program-gate.c', passage, instead } }, join(place, name.replaceAll(' ', '-')))
    const refusals = [
      await refusalOf(driver, async (planted, id) => (await planted.start(id, { command: 'true' })).output),
      await refusalOf(driver, async (planted, id) => (await planted.startAside(id, { command: 'true' })).output),
    ]
    for (const [index, expected] of [plain, aside].entries()) {
      if (expected) expect(refusals[index]).toMatch(expected)
      else expect(refusals[index]).toBeUndefined()
    }
  })
})
