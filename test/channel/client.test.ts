import { Duplex } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { encodeFrame, windowBytes } from '../../src/channel/frames.js'
import { connectWarden } from '../../src/channel/index.js'
import { decodeStart } from './start-reading.js'
import { connected, numbers, request, running, ScriptedWarden, settle } from './scripted-warden.js'

const closed: unknown = expect.objectContaining({ name: 'SandboxError', code: 'closed' })

describe('connecting', () => {
  it('hands the filter over before anything is started', async () => {
    const peer = new ScriptedWarden()
    const connecting = connectWarden(peer.channel, { filter: Buffer.alloc(16, 7) })
    expect((await peer.hear('configure')).payload).toEqual(Buffer.alloc(16, 7))
    peer.hello()
    await connecting
  })

  it('without a filter says nothing of one', async () => {
    const { peer, warden } = await connected()
    warden.close()
    await peer.hear('close')
    expect(peer.heard('configure')).toEqual([])
  })

  it.each([7, 32_776])('refuses a filter of %i bytes', async (length) => {
    await expect(connectWarden(new ScriptedWarden().channel, { filter: Buffer.alloc(length) })).rejects.toMatchObject({ code: 'invalid' })
  })

  it('rejects with the reason of the signal, before and during, and leaves no open channel', async () => {
    const before = new ScriptedWarden()
    await expect(connectWarden(before.channel, { signal: AbortSignal.abort('too late') })).rejects.toBe('too late')
    const during = new ScriptedWarden()
    const controller = new AbortController()
    const connecting = connectWarden(during.channel, { signal: controller.signal })
    controller.abort('changed my mind')
    await expect(connecting).rejects.toBe('changed my mind')
    expect([before.channel.destroyed, during.channel.destroyed]).toEqual([true, true])
  })

  it('once connected does not look at the signal any more', async () => {
    const peer = new ScriptedWarden()
    const controller = new AbortController()
    const connecting = connectWarden(peer.channel, { signal: controller.signal })
    peer.hello()
    const warden = await connecting
    controller.abort()
    const starting = warden.start(request)
    peer.started((await peer.hear('start')).run)
    expect((await starting).started).toBe(true)
  })

  it('fails at once on a channel that is over already', async () => {
    const peer = new ScriptedWarden()
    peer.channel.destroy()
    await expect(connectWarden(peer.channel, {})).rejects.toMatchObject({ code: 'broken' })
  })
})

describe('a run', () => {
  it('is started with exactly what was asked', async () => {
    const { peer, warden } = await connected()
    const asked = {
      ...request,
      argv: ['a', '', 'ü'],
      env: { A: '1=2', B: '' },
      cwd: '/x',
      group: 'run-1',
      rlimits: [{ resource: 6, soft: 1n, hard: 2n ** 64n - 1n }],
    }
    void warden.start(asked).catch(() => {})
    expect(decodeStart((await peer.hear('start')).payload)).toEqual({ ...asked, gate: false })
    warden.close()
  })

  it('gives its output in order, then ends with usage', async () => {
    const { peer, process } = await running()
    expect(process.pid).toBe(7)
    peer.output(1, Buffer.from('one'))
    peer.output(1, Buffer.from('two'), 2)
    peer.endOutput(1)
    peer.exited(1, 1, 15)
    const events: [string, string][] = []
    for await (const event of process.output) events.push([event.type, Buffer.from(event.bytes).toString()])
    expect(events).toEqual([
      ['stdout', 'one'],
      ['stderr', 'two'],
    ])
    expect(await process.exited).toEqual({
      kind: 'signaled',
      code: 15,
      cpuUserMs: 1.5,
      cpuSystemMs: 2.5,
      memoryPeakBytes: 4096,
      readBytes: 512,
      writtenBytes: 2 ** 32,
    })
  })

  it('goes on when its output is cut anywhere, even right behind a header', async () => {
    const { peer, process } = await running()
    const frame = encodeFrame('output', { run: 1, stream: 1 }, Buffer.from('whole'))
    for (let at = 0; at <= frame.length; at += 1) {
      peer.sendRaw(frame.subarray(0, at))
      await settle()
      peer.sendRaw(frame.subarray(at))
      await settle()
    }
    peer.endOutput(1)
    peer.exited(1)
    let printed = ''
    for await (const { bytes } of process.output) printed += Buffer.from(bytes).toString()
    expect(printed).toBe('whole'.repeat(frame.length + 1))
  })

  it('that cannot start is a result', async () => {
    const { peer, warden } = await connected()
    const starting = warden.start(request)
    peer.send('failed', { run: (await peer.hear('start')).run }, Buffer.concat([numbers(2, 2), Buffer.from('execute true')]))
    expect(await starting).toEqual({ started: false, stage: 'exec', errno: 2, text: 'execute true' })
  })

  it('has an id that is never used again', async () => {
    const { peer, warden } = await connected()
    const ids: number[] = []
    for (let count = 0; count < 3; count += 1) {
      const starting = warden.start(request)
      const { run } = await peer.hear('start')
      peer.send('failed', { run }, numbers(3, 11))
      await starting
      ids.push(run)
    }
    expect(ids).toEqual([1, 2, 3])
  })

  it('counts as exited only when its output is read', async () => {
    const { peer, process } = await running()
    peer.output(1, Buffer.from('unread'))
    peer.endOutput(1)
    peer.exited(1)
    await settle()
    let isSettled = false
    void process.exited.then(() => {
      isSettled = true
    })
    await settle()
    expect(isSettled).toBe(false)
    for await (const _ of process.output);
    expect((await process.exited).kind).toBe('exited')
  })

  it('counts as exited when its output is discarded, before or after it came', async () => {
    for (const when of ['before', 'after']) {
      const { peer, process } = await running()
      if (when === 'before') process.discardOutput()
      peer.output(1, Buffer.from('unread'))
      peer.endOutput(1)
      peer.exited(1, 0, 9)
      await settle()
      if (when === 'after') process.discardOutput()
      expect((await process.exited).code).toBe(9)
      for await (const _ of process.output) expect.unreachable('discarded output was handed over')
    }
  })

  it('goes on without its consumer when that leaves the iteration', async () => {
    const { peer, process } = await running()
    peer.output(1, Buffer.from('first'))
    for await (const _ of process.output) break
    peer.output(1, Buffer.from('second'))
    peer.endOutput(1)
    peer.exited(1)
    expect((await process.exited).kind).toBe('exited')
  })

  it('has one consumer', async () => {
    const { process } = await running()
    process.output[Symbol.asyncIterator]()
    expect(() => process.output[Symbol.asyncIterator]()).toThrow(expect.objectContaining({ code: 'conflict' }))
  })

  it('kill asks once and resolves at GONE, however often it is called, during the run and afterwards', async () => {
    const { peer, process } = await running()
    const kills = [process.kill(), process.kill()]
    await peer.hear('kill')
    peer.endOutput(1)
    peer.exited(1, 1, 9)
    expect((await process.exited).code).toBe(9)
    peer.send('gone', { run: 1 })
    await Promise.all([...kills, process.kill()])
    expect(peer.heard('kill')).toEqual([])
    const late = await running()
    late.peer.endOutput(1)
    late.peer.exited(1)
    await late.process.exited
    const killing = late.process.kill()
    await late.peer.hear('kill')
    late.peer.send('gone', { run: 1 })
    await killing
  })

  it('takes signals while it runs, ignores them afterwards, refuses what is none', async () => {
    const { peer, process } = await running()
    process.signal(15)
    expect((await peer.hear('signal')).payload).toEqual(numbers(15))
    peer.endOutput(1)
    peer.exited(1)
    await process.exited
    process.signal(15)
    await settle()
    expect(peer.heard('signal')).toEqual([])
    for (const number of [0, 65, 1.5, Number.NaN]) expect(() => process.signal(number)).toThrow(expect.objectContaining({ code: 'invalid' }))
  })
})

describe('closing', () => {
  it('tells the warden, settles `ended` with nothing and what is pending with `closed`, and is quiet the second time', async () => {
    const { peer, warden, process } = await running()
    const pending = [
      process.exited,
      process.kill(),
      warden.start(request),
      process.write(Buffer.alloc(windowBytes + 1)),
      (async () => {
        for await (const _ of process.output);
      })(),
    ]
    const verdicts = Promise.allSettled(pending)
    await peer.hear('kill')
    warden.close()
    warden.close()
    expect(await warden.ended).toBeUndefined()
    expect((await verdicts).map((each) => (each.status === 'rejected' ? (each.reason as { code: string }).code : 'fulfilled'))).toEqual(
      new Array(5).fill('closed'),
    )
    await peer.hear('close')
    await expect(warden.start(request)).rejects.toEqual(closed)
    peer.sendRaw(Buffer.from('whatever comes now is not looked at'))
    peer.end()
    await settle()
    expect(await warden.ended).toBeUndefined()
  })
})

describe('closing a channel that is full', () => {
  it('lets nobody wait for the warden to read', async () => {
    const { peer, warden, process } = await running()
    peer.stopReading()
    const writing = process.write(Buffer.alloc(200_000))
    await settle()
    const pending = Promise.allSettled([writing, process.write(Buffer.alloc(10)), process.endInput(), warden.start(request)])
    await settle()
    warden.close()
    expect((await pending).map((each) => (each.status === 'rejected' ? (each.reason as { code: string }).code : 'fulfilled'))).toEqual(
      new Array(4).fill('closed'),
    )
  })
})

describe('the channel keeps the process alive', () => {
  class Counted extends Duplex {
    isHeld = true
    override _read(): void {}
    override _write(_chunk: unknown, _encoding: unknown, done: () => void): void {
      done()
    }
    ref(): void {
      this.isHeld = true
    }
    unref(): void {
      this.isHeld = false
    }
  }

  it('exactly while something is awaited of the warden', async () => {
    const peer = new ScriptedWarden()
    const channel = new Counted()
    peer.channel.on('data', (chunk: Buffer) => channel.push(chunk))
    const states: [string, boolean][] = []
    const note = (when: string): void => void states.push([when, channel.isHeld])
    const connecting = connectWarden(channel, {})
    channel.unref()
    channel.ref()
    note('connecting')
    peer.hello()
    const warden = await connecting
    note('idle')
    const starting = warden.start(request)
    note('starting')
    peer.started(1)
    const result = await starting
    note('running')
    if (!result.started) return expect.unreachable()
    peer.endOutput(1)
    peer.exited(1)
    await result.process.exited
    await settle()
    note('exited')
    const killing = result.process.kill()
    note('killing')
    peer.send('gone', { run: 1 })
    await killing
    note('gone')
    expect(states).toEqual([
      ['connecting', true],
      ['idle', false],
      ['starting', true],
      ['running', true],
      ['exited', false],
      ['killing', true],
      ['gone', false],
    ])
  })
})
