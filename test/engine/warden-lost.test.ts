import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { PlatformProcess } from '../../src/contract/platform.js'
import type { Engine } from '../../src/engine/engine.js'
import { rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'

let driver: PlainDriver
let engine: Engine
let id: string

beforeEach(async () => {
  driver = new PlainDriver()
  engine = createPlainEngine(driver)
  id = (await engine.create({})).id
})

afterEach(() => engine[Symbol.asyncDispose]())

const size = { cols: 80, rows: 24 }

/** Prints its port, takes one in and never answers. */
const server = `import socket, time
one = socket.create_server(('127.0.0.1', 0))
print(one.getsockname()[1], flush=True)
held = one.accept()
time.sleep(30)`

async function firstOf({ output }: PlatformProcess): Promise<string> {
  for await (const { bytes } of output) return Buffer.from(bytes).toString()
  return ''
}

async function drain(output: PlatformProcess['output']): Promise<void> {
  for await (const _ of output) continue
}

async function writeWithoutEnd(process: PlatformProcess): Promise<void> {
  for (;;) await process.write(new Uint8Array(65_536))
}

function endOf(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => {
    socket.once('error', () => undefined)
    socket.once('close', resolve)
    socket.resume()
  })
}

test('all that goes on in a sandbox whose warden is killed is told so, at once and by the same words', async () => {
  const listening = await engine.start(id, { command: ['/usr/bin/python3', '-I', '-c', server], background: true })
  const port = Number(await firstOf(listening))
  const forward = await engine.ports.forward(id, port)
  const socket = connect({ port: forward.port, host: '127.0.0.1' })
  await once(socket, 'connect')
  const terminal = await engine.start(id, { command: 'echo up; sleep 30', terminal: size, stdin: true, background: true })
  await firstOf(terminal)
  const talking = await engine.start(id, { command: 'yes', stdin: true })
  const deaf = await engine.start(id, { command: 'sleep 30', stdin: true })
  const watching = await engine.files.of(id).watch('.')

  const told = [
    terminal.ended,
    drain((await engine.processes.attach(id, terminal.pid)).output),
    talking.ended,
    drain(talking.output),
    deaf.ended,
    writeWithoutEnd(deaf),
    drain(watching as never),
    engine.ports.waitFor(id, 1),
  ].map(rejectionOf)
  const broken = endOf(socket)
  driver.cells[0]?.child.kill('SIGKILL')

  const errors = (await Promise.all(told)) as { code: string; message: string }[]
  expect([...new Set(errors.map(({ code }) => code))]).toEqual(['broken'])
  expect(errors.every(({ message }) => message.includes(id))).toBe(true)
  await broken
  const late = connect({ port: forward.port, host: '127.0.0.1' })
  await endOf(late)
  await terminal.resize(size)
  const acts = [() => terminal.write(new Uint8Array(1)), () => engine.start(id, { command: 'true' }), () => engine.ports.forward(id, port)]
  for (const act of acts) expect(await rejectionOf(act())).toMatchObject({ code: 'broken', message: expect.stringContaining(id) as string })
  await expect.poll(() => driver.openCells).toBe(0)
})

test('a terminal whose program is gone takes nothing more, tells what was shown, and hangs nobody', async () => {
  const terminal = await engine.start(id, { command: 'echo shown; exit 3', terminal: size, stdin: true, background: true })
  expect((await terminal.ended).outcome).toEqual({ kind: 'exited', code: 3 })
  expect(await rejectionOf(terminal.write(Buffer.from('x')))).toMatchObject({ code: 'conflict' })
  await terminal.resize({ cols: 10, rows: 10 })
  const late = await engine.processes.attach(id, terminal.pid, { replay: true })
  expect(await firstOf(late)).toBe('shown\r\n')
  await late.kill()
  await drain(late.output)
})
