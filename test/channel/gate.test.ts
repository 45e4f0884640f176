import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { WardenExit } from '../../src/channel/index.js'
import { encodeNumberFrame } from '../../src/channel/frames.js'
import { decodeStart } from './start-reading.js'
import { collect, openWarden } from './native-warden.js'
import { connected, numbers, request, type ScriptedWarden, settle } from './scripted-warden.js'

const broken: unknown = expect.objectContaining({ name: 'SandboxError', code: 'broken' })
const noGate = (): Promise<void> => Promise.reject(new Error('the gate was reached'))

/** A start whose gate opens when the test says so. */
async function starting() {
  const { peer, warden } = await connected()
  const pids: number[] = []
  const gate: { open?: () => void; shut?: (error: Error) => void } = {}
  const giving = new AbortController()
  const result = warden.start(request, {
    giveUp: giving.signal,
    atGate: (pid) => {
      pids.push(pid)
      return new Promise((resolve, reject) => Object.assign(gate, { open: resolve, shut: reject }))
    },
  })
  result.catch(() => {})
  const { run, payload } = await peer.hear('start')
  return { peer, warden, result, run, payload, pids, gate, giving }
}

describe('a start with a gate', () => {
  it('asks for one, tells the pid, and releases only when the gate opens', async () => {
    const { peer, result, run, payload, pids, gate } = await starting()
    expect(decodeStart(payload).gate).toBe(true)
    peer.gated(run, 41)
    await settle()
    expect([pids, peer.heard('release')]).toEqual([[41], []])
    gate.open?.()
    expect((await peer.hear('release')).run).toBe(run)
    peer.started(run, 41)
    expect(await result).toMatchObject({ started: true, process: { pid: 41 } })
  })

  it('that shuts kills the run, waits until nothing of it is left, and rejects with the same error', async () => {
    const { peer, result, run, gate } = await starting()
    peer.gated(run)
    await settle()
    const reason = new Error('not as demanded')
    gate.shut?.(reason)
    expect((await peer.hear('kill')).run).toBe(run)
    let isSettled = false
    void result.catch(() => {
      isSettled = true
    })
    peer.exited(run, 1, 9)
    await settle()
    expect(isSettled).toBe(false)
    peer.send('gone', { run })
    await expect(result).rejects.toBe(reason)
    expect(peer.heard('release')).toEqual([])
  })

  it('is not reached by what fails before', async () => {
    const { peer, warden } = await connected()
    const result = warden.start(request, { atGate: noGate })
    peer.send('failed', { run: (await peer.hear('start')).run }, Buffer.concat([numbers(1, 2), Buffer.from('enter /x')]))
    expect(await result).toEqual({ started: false, stage: 'cwd', errno: 2, text: 'enter /x' })
  })

  it.each([
    ['on the way there', false],
    ['while it waits', true],
  ])('a program that was ended %s was not started, and how it ended is told', async (_name, isThere) => {
    const { peer, result, run } = await starting()
    if (isThere) peer.gated(run)
    await settle()
    peer.exited(run, 1, 31)
    const exit: WardenExit = { kind: 'signaled', code: 31, cpuUserMs: 1.5, cpuSystemMs: 2.5, memoryPeakBytes: 4096, readBytes: 512, writtenBytes: 2 ** 32 }
    expect(await result).toEqual({ started: false, stage: 'set-up', errno: 4, text: 'the program was killed by signal 31 before it ran', exit })
    expect(peer.heard('release')).toEqual([])
  })

  it('what fails behind it is a result', async () => {
    const { peer, result, run, gate } = await starting()
    peer.gated(run)
    await settle()
    gate.open?.()
    await peer.hear('release')
    peer.send('failed', { run }, Buffer.concat([numbers(2, 13), Buffer.from('execute x')]))
    expect(await result).toEqual({ started: false, stage: 'exec', errno: 13, text: 'execute x' })
  })

  it('whose program died meanwhile is no error, whatever was found of it: how it ended is told', async () => {
    const { peer, result, run, gate } = await starting()
    peer.gated(run)
    await settle()
    gate.shut?.(new Error('not as demanded'))
    await settle()
    peer.exited(run, 1, 9)
    expect(await result).toMatchObject({ started: false, text: 'the program was killed by signal 9 before it ran' })
    expect([peer.heard('kill'), peer.heard('release')]).toEqual([[], []])
  })

  it.each([
    ['before its gate', false],
    ['at its gate', true],
  ])('that is given up %s is killed, never released, and told once nothing of it is left', async (_name, isThere) => {
    const { peer, warden } = await connected()
    const [giving, pids] = [new AbortController(), [] as number[]]
    let open: (() => void) | undefined
    const result = warden.start(request, {
      giveUp: giving.signal,
      atGate: (pid) => {
        pids.push(pid)
        return new Promise((resolve) => {
          open = resolve
        })
      },
    })
    const { run } = await peer.hear('start')
    if (isThere) peer.gated(run)
    await settle()
    giving.abort()
    expect((await peer.hear('kill')).run).toBe(run)
    open?.()
    await settle()
    peer.exited(run, 1, 9)
    let isSettled = false
    void result.then(() => {
      isSettled = true
    })
    await settle()
    expect([isSettled, pids.length]).toEqual([false, isThere ? 1 : 0])
    peer.send('gone', { run })
    expect(await result).toMatchObject({ started: false, exit: { kind: 'signaled', code: 9 } })
    expect(peer.heard('release')).toEqual([])
  })

  it('that is given up when it runs already is told as started', async () => {
    const { peer, result, run, gate, giving } = await starting()
    peer.gated(run, 41)
    await settle()
    gate.open?.()
    await peer.hear('release')
    giving.abort()
    await peer.hear('kill')
    peer.started(run, 41)
    peer.endOutput(run)
    peer.send('gone', { run })
    peer.exited(run, 1, 9)
    expect(await result).toMatchObject({ started: true, process: { pid: 41 } })
  })

  it('closing lets nobody wait for it to open', async () => {
    const { peer, warden, result, run } = await starting()
    peer.gated(run)
    await settle()
    warden.close()
    await expect(result).rejects.toMatchObject({ code: 'closed' })
  })

  type Step = (peer: ScriptedWarden, run: number) => void
  const gated: Step = (peer, run) => peer.gated(run)
  it.each<[string, Step[]]>([
    ['GATED twice', [gated, gated]],
    ['GATED with pid 0', [(peer, run) => peer.gated(run, 0)]],
    ['GATED for another run', [(peer, run) => peer.gated(run + 1)]],
    ['STARTED before GATED', [(peer, run) => peer.started(run)]],
    ['STARTED before RELEASE', [gated, (peer, run) => peer.started(run)]],
    ['OUTPUT at the gate', [gated, (peer, run) => peer.output(run, Buffer.from('x'))]],
    ['the end of output at the gate', [gated, (peer, run) => peer.endOutput(run)]],
    ['credit at the gate', [gated, (peer, run) => peer.sendRaw(encodeNumberFrame('credit', { run }, 0))]],
    ['GONE at the gate without KILL', [gated, (peer, run) => peer.send('gone', { run })]],
    ['EXITED of an unknown kind at the gate', [gated, (peer, run) => peer.exited(run, 3)]],
    ['GATED after FAILED', [(peer, run) => peer.send('failed', { run }, numbers(2, 2)), gated]],
  ])('%s ends the channel', async (_name, steps) => {
    const { peer, warden, run } = await starting()
    for (const step of steps) step(peer, run)
    expect(await warden.ended).toEqual(broken)
  })

  it.each<[string, Step]>([
    ['GATED again', gated],
    ['STARTED with another pid', (peer, run) => peer.started(run, 8)],
    ['OUTPUT', (peer, run) => peer.output(run, Buffer.from('x'))],
  ])('%s instead of STARTED ends the channel', async (_name, step) => {
    const { peer, warden, result, run, gate } = await starting()
    peer.gated(run)
    await settle()
    gate.open?.()
    await peer.hear('release')
    step(peer, run)
    await expect(result).rejects.toEqual(broken)
    expect(await warden.ended).toEqual(broken)
  })

  it.each<[string, Step]>([
    ['GATED', gated],
    ['EXITED', (peer, run) => peer.exited(run)],
  ])('%s that nobody asked for ends the channel', async (_name, step) => {
    const { peer, warden } = await connected()
    const result = warden.start(request)
    result.catch(() => {})
    step(peer, (await peer.hear('start')).run)
    await expect(result).rejects.toEqual(broken)
  })
})

describe('with the real warden', () => {
  it('a program waits until its gate opens, and then runs', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'glovebox-gate-'))
    try {
      await using native = await openWarden()
      const trace = join(folder, 'trace')
      const seen: [number, boolean][] = []
      const result = await native.warden.start(native.request(['sh', '-c', 'echo $$ | tee "$0"', trace], { cwd: '/' }), {
        atGate: async (pid) => {
          await settle()
          seen.push([pid, existsSync(trace)])
        },
      })
      if (!result.started) return expect.unreachable()
      expect((await collect(result.process)).stdout.toString()).toBe(`${result.process.pid}\n`)
      expect([seen, existsSync(trace)]).toEqual([[[result.process.pid, false]], true])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('a gate that shuts leaves no process, and the next run starts', async () => {
    await using native = await openWarden()
    const pids: number[] = []
    const reason = new Error('not as demanded')
    const starts = Array.from({ length: 20 }, () =>
      native.warden.start(native.request(['sleep', '60']), {
        atGate: (pid) => {
          pids.push(pid)
          return Promise.reject(reason)
        },
      }),
    )
    const verdicts = await Promise.allSettled(starts)
    expect(verdicts).toEqual(Array.from({ length: 20 }, () => ({ status: 'rejected', reason })))
    expect([pids.length, pids.filter((pid) => existsSync(`/proc/${pid}`))]).toEqual([20, []])
    expect((await collect(await native.start(['echo', 'next']))).stdout.toString()).toBe('next\n')
  })

  it('a group that nothing can be joined in is a failure of the set-up', async () => {
    await using native = await openWarden()
    const result = await native.warden.start(native.request(['true'], { group: 'run-1' }), { atGate: noGate })
    expect(result).toEqual({ started: false, stage: 'set-up', errno: 2, text: 'find a place to join group run-1' })
  })
})
