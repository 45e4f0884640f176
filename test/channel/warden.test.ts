import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { collect, openWarden } from './native-warden.js'
import { runAlone } from './run-alone.js'

const ENOENT = 2
const EACCES = 13

/** A process that is there and not merely waiting to be reaped. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
  } catch {
    return false
  }
}

describe('with the real warden', () => {
  it('a program gives its output, its code and its usage', async () => {
    await using native = await openWarden()
    const run = await native.start(['sh', '-c', 'printf out; printf err >&2; exit 7'])
    const { stdout, stderr } = await collect(run)
    expect([stdout.toString(), stderr.toString()]).toEqual(['out', 'err'])
    const exit = await run.exited
    expect([exit.kind, exit.code]).toEqual(['exited', 7])
    expect(exit.memoryPeakBytes).toBeGreaterThan(100_000)
  })

  it('64 MiB go through cat and come back byte-exact', async () => {
    await using native = await openWarden()
    const run = await native.start(['cat'], { stdin: true })
    const block = randomBytes(1 << 20)
    const sent = createHash('sha256')
    const got = createHash('sha256')
    const feed = async (): Promise<void> => {
      for (let count = 0; count < 64; count += 1) {
        block.writeUInt32LE(count)
        sent.update(block)
        await run.write(block)
      }
      await run.endInput()
    }
    const feeding = feed()
    let bytes = 0
    for await (const event of run.output) {
      bytes += event.bytes.length
      got.update(event.bytes)
    }
    await feeding
    expect(bytes).toBe(64 << 20)
    expect(got.digest('hex')).toBe(sent.digest('hex'))
    expect((await run.exited).code).toBe(0)
  })

  it('a program that does not read its input is fed a bounded amount, and the rest is swallowed when it ends', async () => {
    await using native = await openWarden()
    const run = await native.start(['sleep', '0.3'], { stdin: true })
    await run.write(Buffer.alloc(4 << 20))
    expect((await run.exited).code).toBe(0)
  })

  it('a program that closed its input swallows what is written', async () => {
    await using native = await openWarden()
    const run = await native.start(['sh', '-c', 'exec <&-; echo closed; sleep 0.5'], { stdin: true })
    const reading = collect(run)
    await run.write(Buffer.alloc(4 << 20))
    await run.endInput()
    expect((await reading).stdout.toString()).toBe('closed\n')
  })

  it('a hundred at once do not mix', async () => {
    await using native = await openWarden()
    const texts = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const run = await native.start(['sh', '-c', `cat; echo ${index}`], { stdin: true })
        const reading = collect(run)
        await run.write(Buffer.from(`${index}:`))
        await run.endInput()
        await run.exited
        return (await reading).stdout.toString()
      }),
    )
    expect(texts).toEqual(Array.from({ length: 100 }, (_, index) => `${index}:${index}\n`))
  })

  it('one that is not read does not hold up another', async () => {
    await using native = await openWarden()
    await native.start(['yes'])
    const run = await native.start(['echo', 'through'])
    expect((await collect(run)).stdout.toString()).toBe('through\n')
  })

  it('a signal reaches the program, and how it ended is told', async () => {
    await using native = await openWarden()
    const caught = await native.start(['sh', '-c', 'trap "echo caught; exit 3" TERM; echo ready; while :; do sleep 0.05; done'])
    let printed = ''
    for await (const { type, bytes } of caught.output) {
      if (type === 'stdout') printed += Buffer.from(bytes).toString()
      if (printed === 'ready\n') caught.signal(15)
    }
    expect(printed).toBe('ready\ncaught\n')
    expect((await caught.exited).code).toBe(3)
    const killed = await native.start(['sleep', '100'])
    killed.signal(9)
    expect(await killed.exited).toMatchObject({ kind: 'signaled', code: 9 })
  })

  it('kill takes descendants that ran away with it', async () => {
    await using native = await openWarden()
    const run = await native.start(['sh', '-c', 'setsid sh -c "echo \\$\\$; exec sleep 100" & wait'])
    const iterator = run.output[Symbol.asyncIterator]()
    const pid = Number(Buffer.from((await iterator.next()).value?.bytes ?? []).toString())
    expect(isAlive(pid)).toBe(true)
    await run.kill()
    expect(isAlive(pid)).toBe(false)
    run.discardOutput()
    expect(await run.exited).toMatchObject({ kind: 'signaled', code: 9 })
  })

  it('kill of a run that is over takes what it left in the background', async () => {
    await using native = await openWarden()
    const run = await native.start(['sh', '-c', 'sleep 100 >/dev/null 2>&1 </dev/null & echo $!'])
    const pid = Number((await collect(run)).stdout.toString())
    await run.exited
    expect(isAlive(pid)).toBe(true)
    await run.kill()
    expect(isAlive(pid)).toBe(false)
  })

  it('a program, or a folder, that is not there is a result', async () => {
    await using native = await openWarden()
    expect(await native.warden.start(native.request(['no-such-program']))).toMatchObject({ started: false, stage: 'exec', errno: ENOENT })
    expect(await native.warden.start(native.request(['/etc/passwd']))).toMatchObject({ started: false, stage: 'exec', errno: EACCES })
    expect(await native.warden.start(native.request(['true'], { cwd: '/no/such/folder' }))).toMatchObject({ started: false, stage: 'cwd', errno: ENOENT })
  })

  it('nothing the program prints is taken for a frame', async () => {
    await using native = await openWarden()
    const forged = '\\044\\0\\0\\0\\001\\0\\0\\0'
    const run = await native.start(['sh', '-c', `printf '\\0\\0\\0\\0${forged}'; printf '\\0\\0\\0\\0${forged}' >/dev/stderr`])
    const { stdout, stderr } = await collect(run)
    expect(stdout).toEqual(Buffer.from([0, 0, 0, 0, 0x24, 0, 0, 0, 1, 0, 0, 0]))
    expect(stderr).toEqual(stdout)
  })

  it('a channel that ends under a run rejects what is pending, and the program dies', async () => {
    await using native = await openWarden()
    const run = await native.start(['sleep', '100'], { stdin: true })
    const pending = Promise.allSettled([run.exited, run.kill(), run.write(Buffer.alloc(1 << 20)), collect(run)])
    native.cell.channel.destroy()
    expect((await pending).map((each) => (each.status === 'rejected' ? (each.reason as { code: string }).code : 'fulfilled'))).toEqual(
      new Array(4).fill('broken'),
    )
    await native.cell.close()
    expect(isAlive(run.pid)).toBe(false)
  })

  it('a malformed frame ends it with the warden’s own words', async () => {
    await using native = await openWarden()
    native.cell.channel.write(Buffer.alloc(12, 0x66))
    const ended = await native.warden.ended
    expect(ended?.code).toBe('broken')
    expect(ended?.message).toMatch(/^the warden gave up: ./)
  })

  it('close ends every program', async () => {
    const native = await openWarden()
    const run = await native.start(['sh', '-c', 'setsid sleep 100 & echo $!; wait'])
    const iterator = run.output[Symbol.asyncIterator]()
    const pid = Number(Buffer.from((await iterator.next()).value?.bytes ?? []).toString())
    native.warden.close()
    expect(await native.warden.ended).toBeUndefined()
    await native.cell.close()
    expect([isAlive(pid), isAlive(run.pid)]).toEqual([false, false])
  })
})

describe('in a process of its own', () => {
  it.each(['slowly', 'discard'])('a flood on both streams that is read %s takes no memory', async (way) => {
    const { growthBytes, read } = JSON.parse(await runAlone('./flood.ts', [way])) as { growthBytes: number; read: number }
    // Gigabytes go by in these seconds; how much garbage waits for its collector depends on the machine.
    expect(growthBytes).toBeLessThan((way === 'slowly' ? 50 : 128) << 20)
    if (way === 'slowly') expect(read).toBeGreaterThan(0)
  })

  it.each([
    ['idle', 'idle'],
    ['running', 'exited 5'],
    ['killing', 'gone'],
    ['ready', 'ready exited 6'],
  ])('an open warden, %s, keeps it alive only as long as something is awaited', async (way, printed) => {
    expect(await runAlone('./liveness.ts', [way])).toBe(printed)
  })
})
