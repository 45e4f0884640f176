import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { pipeline } from 'node:stream/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine/engine.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { createPlainEngine, PlainDriver } from '../engine/plain-driver.js'

let platform: Engine
let sandbox: Sandbox

beforeEach(async () => {
  platform = createPlainEngine(new PlainDriver())
  sandbox = await Sandbox.create({ platform })
})
afterEach(() => platform[Symbol.asyncDispose]())

type Start = (argv: readonly [string, ...string[]]) => Promise<ChildProcess>

const ours: Start = async (argv) => (await sandbox.spawn([...argv])).toChildProcess() as unknown as ChildProcess
// Of a folder in PATH that may not be looked into Node.js tells EACCES.
const nodes: Start = ([file, ...args]) => Promise.resolve(spawn(file, args, { env: { PATH: '/usr/bin:/bin' } }))

/** Everything that a child tells, in its order; what comes in pieces once. */
async function story(start: Start, argv: readonly [string, ...string[]], act: (child: ChildProcess) => void = () => undefined): Promise<string[]> {
  const child = await start(argv)
  const told: string[] = []
  const tell = (line: string): void => void (told.at(-1) !== line && told.push(line))
  child.on('spawn', () => tell('spawn'))
  child.on('error', (error: NodeJS.ErrnoException) => tell(`error ${error.code ?? ''}`))
  child.on('exit', (...codes) => tell(`exit ${codes.join()}`))
  child.stdout?.on('data', (bytes: Buffer) => tell(`stdout ${String(bytes)}`))
  child.on('close', (...codes) => tell(`close ${codes.join()} ${String(child.exitCode)} ${String(child.signalCode)} ${String(child.killed)}`))
  act(child)
  await once(child, 'close').catch(() => once(child, 'close'))
  return told.filter((line) => !line.startsWith('stdout'))
}

describe('a process seen as a child process', () => {
  test.each<[string, readonly [string, ...string[]], ((child: ChildProcess) => void)?]>([
    ['that exits', ['sh', '-c', 'echo hello; exit 3']],
    ['that is read from by nobody', ['sh', '-c', 'head -c 30000 /dev/zero >&2']],
    ['that is killed', ['sleep', '30'], (child) => setTimeout(() => child.kill(), 100)],
    ['that is killed for good', ['sh', '-c', 'trap "" TERM; exec sleep 30'], (child) => setTimeout(() => child.kill('SIGKILL'), 100)],
    ['that is not there', ['no-such-program']],
  ])('%s tells the same as one of Node.js', async (_, argv, act) => {
    const expected = await story(nodes, argv, act)
    expect(await story(ours, argv, act)).toEqual(expected)
    expect(expected.at(-1)).toMatch(/^close /)
  })

  test('has a pid, three streams of Node.js that can be piped, and says when it is over', async () => {
    const process = await sandbox.spawn(['tr', 'a-z', 'A-Z'])
    const child = process.toChildProcess() as unknown as ChildProcess
    expect(child.pid).toBe(process.pid)
    expect([child.exitCode, child.signalCode, child.killed]).toEqual([null, null, false])
    let seen = ''
    const reading = pipeline(child.stdout as NodeJS.ReadableStream, async (chunks: AsyncIterable<Buffer | string>) => {
      for await (const chunk of chunks) seen += String(chunk)
    })
    await pipeline(['hello ', 'there'], child.stdin as NodeJS.WritableStream)
    await Promise.all([reading, once(child, 'close')])
    expect([seen, child.exitCode, child.kill()]).toEqual(['HELLO THERE', 0, false])
    expect(child.stdio).toEqual([child.stdin, child.stdout, child.stderr])
  })

  test('of which two are held gives each of them all the output, beside its own web streams', async () => {
    const process = await sandbox.spawn('echo one; echo two')
    const texts = [process.toChildProcess(), process.toChildProcess()].map(async ({ stdout }) => {
      let text = ''
      for await (const bytes of stdout) text += String(bytes)
      return text
    })
    expect(await Promise.all([...texts, new Response(process.stdout as never).text()])).toEqual(Array(3).fill('one\ntwo\n'))
  })

  test('whose sandbox closes is told as killed, with nobody listening for errors, also while it is written to and read', async () => {
    const child = (await sandbox.spawn(['sleep', '30'])).toChildProcess() as unknown as ChildProcess
    const told: string[] = []
    child.on('exit', (...codes) => told.push(`exit ${codes.join()}`))
    child.stdout?.on('end', () => told.push('end')).resume()
    child.stdin?.write(Buffer.alloc(5_000_000))
    const closed = once(child, 'close')
    await sandbox.close()
    expect(await closed).toEqual([null, 'SIGKILL'])
    expect([told.toSorted(), child.signalCode, child.kill()]).toEqual([['end', 'exit ,SIGKILL'], 'SIGKILL', false])
  })

  test('has an input that breaks as a pipe does when the program ends without reading it', async () => {
    const child = (await sandbox.spawn(['sh', '-c', 'sleep 0.2'])).toChildProcess() as unknown as ChildProcess
    child.stdin?.on('error', () => undefined)
    // What is on its way while the program ends may still be taken; what comes later meets a broken pipe, or a stream that its end has closed.
    const broken = await new Promise<NodeJS.ErrnoException>((resolve) => {
      const goOn = (error?: NodeJS.ErrnoException | null): void => (error ? resolve(error) : void child.stdin?.write(Buffer.alloc(5_000_000), goOn))
      goOn()
    })
    expect(['EPIPE', 'ERR_STREAM_DESTROYED']).toContain(broken.code)
  })

  test('tells what it was started with as Node.js does, and refuses what is no signal in its words', async () => {
    const ofNode = spawn('sleep', ['30'])
    const own = (await ours(['sleep', '30'])) as ChildProcess
    const told = ({ spawnfile, spawnargs, connected }: ChildProcess): unknown => ({ spawnfile, spawnargs, connected })
    expect(told(own)).toEqual(told(ofNode))
    for (const wrong of ['SIGBAD', '', 99, 'TERM']) {
      const [theirs, mine] = [ofNode, own].map((child) => thrownBy(() => child.kill(wrong as never)))
      expect(mine).toMatchObject({ name: 'TypeError', code: 'ERR_UNKNOWN_SIGNAL', message: (theirs as Error).message })
    }
    const ends = [ofNode, own].map((child) => once(child, 'exit'))
    expect([own.kill(0), own.kill('sigint' as never), ofNode.kill('sigint' as never)]).toEqual([true, true, true])
    const [theirs, mine] = await Promise.all(ends)
    expect(mine).toEqual(theirs)
    const shell = (await sandbox.spawn('true')).toChildProcess()
    expect([shell.spawnfile, shell.spawnargs]).toEqual(['/bin/sh', ['/bin/sh', '-c', 'true']])
  })
})

function thrownBy(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return error
  }
}
