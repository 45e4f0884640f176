import { describe, expect, it } from 'vitest'
import { connectWarden } from '../../src/channel/index.js'
import { encodeNumberFrame, windowBytes } from '../../src/channel/frames.js'
import { connected, numbers, request, running, ScriptedWarden, settle } from './scripted-warden.js'

const broken: unknown = expect.objectContaining({ name: 'SandboxError', code: 'broken' })

function fails(promise: Promise<unknown>, error: unknown = broken): Promise<void> {
  return expect(promise).rejects.toEqual(error)
}

/** Each breaks one rule towards an engine that has run 1 running. */
const breaches: Record<string, (peer: ScriptedWarden) => void> = {
  'an unknown type': (peer) => peer.sendRaw(Buffer.from('000000003300000001000000', 'hex')),
  'a frame only the engine sends': (peer) => peer.send('kill', { run: 1 }),
  'a wrong length': (peer) => peer.send('started', { run: 1 }, Buffer.alloc(5)),
  'a wrong stream': (peer) => peer.send('exited', { run: 1, stream: 1 }, Buffer.alloc(48)),
  'a reserved field that is not zero': (peer) => peer.sendRaw(Buffer.from('000000002400010001000000', 'hex')),
  'a frame for a run that was never started': (peer) => peer.output(9, Buffer.from('x')),
  'STARTED for a run that was never started': (peer) => peer.started(9),
  'a frame for run 0': (peer) => peer.send('gone', { run: 0 }),
  'STARTED twice': (peer) => peer.started(1),
  'FAILED after STARTED': (peer) => peer.send('failed', { run: 1 }, numbers(2, 2)),
  'output after the end of its stream': (peer) => {
    peer.send('output', { run: 1, stream: 1 })
    peer.output(1, Buffer.from('x'))
  },
  'the end of a stream twice': (peer) => {
    peer.send('output', { run: 1, stream: 2 })
    peer.send('output', { run: 1, stream: 2 })
  },
  'output aside of a run that has no aside': (peer) => peer.output(1, Buffer.from('x'), 3),
  'the end of an aside that there is not': (peer) => peer.send('output', { run: 1, stream: 3 }),
  'EXITED before any stream ended': (peer) => peer.exited(1),
  'EXITED before the second stream ended': (peer) => {
    peer.send('output', { run: 1, stream: 1 })
    peer.exited(1)
  },
  'EXITED of an unknown kind': (peer) => {
    peer.endOutput(1)
    peer.exited(1, 3)
  },
  'EXITED with an impossible exit code': (peer) => {
    peer.endOutput(1)
    peer.exited(1, 0, 256)
  },
  'EXITED by signal 0': (peer) => {
    peer.endOutput(1)
    peer.exited(1, 1, 0)
  },
  'HELLO twice': (peer) => peer.hello(),
  'credit beyond the window': (peer) => peer.sendRaw(encodeNumberFrame('credit', { run: 1 }, windowBytes + 1)),
  'GONE without KILL': (peer) => peer.send('gone', { run: 1 }),
  FATAL: (peer) => peer.send('fatal', {}, Buffer.from('mount /tmp: no space')),
  'the end of the channel': (peer) => peer.end(),
  'the end of the channel in the middle of a header': (peer) => {
    peer.sendRaw(Buffer.alloc(5))
    peer.end()
  },
  'the end of the channel in the middle of a payload': (peer) => {
    peer.sendRaw(Buffer.from('300000002300000001000000ffff', 'hex'))
    peer.end()
  },
  'a channel that is destroyed': (peer) => peer.vanish(),
  'a channel that fails': (peer) => peer.vanish(new Error('reset')),
}

describe('a warden that breaks a rule ends the channel, and everything pending with it', () => {
  it.each(Object.entries(breaches))('%s', async (_, breach) => {
    const { peer, warden, process } = await running()
    const iterator = process.output[Symbol.asyncIterator]()
    const pending = [
      iterator
        .next()
        .then(() => iterator.next())
        .then(() => iterator.next())
        .then(() => iterator.next())
        .then(() => iterator.next()),
      process.exited,
      process.kill().then(() => process.kill()),
      process.write(Buffer.alloc(windowBytes + 1)),
      process.endInput(),
      warden.start(request),
    ]
    const verdicts = Promise.allSettled(pending)
    await peer.hear('kill')
    // GONE is what the first KILL asks for, so that only the second is a breach.
    if (_ === 'GONE without KILL') peer.send('gone', { run: 1 })
    breach(peer)
    expect(await warden.ended).toEqual(broken)
    const settled = await verdicts
    const rejected = settled.map((each) => (each.status === 'rejected' ? (each.reason as { code: string }).code : each.status))
    const wasKilled = _ === 'GONE without KILL'
    const hadEnded = /EXITED (of|with|by)/.test(_)
    expect(rejected).toEqual([hadEnded ? 'fulfilled' : 'broken', 'broken', wasKilled ? 'fulfilled' : 'broken', 'broken', 'broken', 'broken'])
    expect(peer.channel.destroyed).toBe(true)
    await fails(warden.start(request))
    await fails(process.kill().then(() => process.write(Buffer.from('x'))))
  })

  it.each<[string, (peer: ScriptedWarden) => void]>([
    ['HELLO of another version', (peer) => peer.hello(2)],
    ['HELLO with a window that would take any memory', (peer) => peer.hello(3, 0xffffffff)],
    ['HELLO with no window', (peer) => peer.hello(3, 0)],
    ['a frame before HELLO', (peer) => peer.started(1)],
    ['FATAL instead of HELLO', (peer) => peer.send('fatal', {}, Buffer.from('no'))],
    ['the end of the channel instead of HELLO', (peer) => peer.end()],
    ['a channel that fails instead of HELLO', (peer) => peer.vanish(new Error('reset'))],
  ])('%s: connecting fails', async (_, breach) => {
    const peer = new ScriptedWarden()
    const connecting = connectWarden(peer.channel, { filter: Buffer.alloc(8) })
    breach(peer)
    await fails(connecting)
    await settle()
    expect(peer.channel.destroyed).toBe(true)
  })

  it.each<[string, (peer: ScriptedWarden, run: number) => void]>([
    ['OUTPUT', (peer, run) => peer.output(run, Buffer.from('x'))],
    ['EXITED', (peer, run) => peer.exited(run)],
    ['credit', (peer, run) => peer.sendRaw(encodeNumberFrame('credit', { run }, 0))],
    ['FAILED at an unknown stage', (peer, run) => peer.send('failed', { run }, numbers(4, 2))],
    ['STARTED with pid 0', (peer, run) => peer.started(run, 0)],
  ])('%s instead of STARTED: starting fails', async (_, breach) => {
    const { peer, warden } = await connected()
    const starting = warden.start(request)
    breach(peer, (await peer.hear('start')).run)
    await fails(starting)
    expect(await warden.ended).toEqual(broken)
  })

  it.each<[string, (peer: ScriptedWarden) => void]>([
    ['OUTPUT', (peer) => peer.output(1, Buffer.from('x'))],
    ['EXITED', (peer) => peer.exited(1)],
    ['credit', (peer) => peer.sendRaw(encodeNumberFrame('credit', { run: 1 }, 0))],
    ['GONE', (peer) => peer.send('gone', { run: 1 })],
  ])('%s after EXITED ends the channel, but not what is known of the run', async (_, breach) => {
    const { peer, warden, process } = await running()
    peer.output(1, Buffer.from('all of it'))
    peer.endOutput(1)
    peer.exited(1)
    breach(peer)
    expect(await warden.ended).toEqual(broken)
    const texts: string[] = []
    for await (const event of process.output) texts.push(Buffer.from(event.bytes).toString())
    expect(texts).toEqual(['all of it'])
    expect((await process.exited).kind).toBe('exited')
  })

  it('one byte beyond the window ends it, the whole window does not', async () => {
    const { peer, warden } = await running()
    peer.output(1, Buffer.alloc(windowBytes))
    peer.output(1, Buffer.alloc(windowBytes), 2)
    await settle()
    expect(peer.channel.destroyed).toBe(false)
    peer.output(1, Buffer.alloc(1), 2)
    expect((await warden.ended)?.message).toMatch(/credit for 0/)
  })

  it('says what the warden said, with nothing in it that acts on a terminal', async () => {
    const { peer, warden } = await connected()
    peer.send('fatal', {}, Buffer.from('a\u001b]0;owned\u0007\n\u202eb\u2028c\xff', 'utf8'))
    expect((await warden.ended)?.message).toBe('the warden gave up: a\uFFFD]0;owned\uFFFD\uFFFD\uFFFDb\uFFFDc\xff')
  })

  it('a run nobody looks at makes no unhandled rejection', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown): void => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    const run = await running()
    void run.process.write(Buffer.alloc(windowBytes * 2))
    void run.process.endInput()
    void run.process.kill()
    run.peer.vanish()
    await run.warden.ended
    await settle()
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
  })
})
