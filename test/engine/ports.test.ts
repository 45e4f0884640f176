import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { PlatformProcess } from '../../src/contract/platform.js'
import type { Engine } from '../../src/engine/engine.js'
import { rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'

const servers = fileURLToPath(new URL('programs/servers.mjs', import.meta.url))
let driver: PlainDriver
let engine: Engine
let id: string

beforeEach(async () => {
  driver = new PlainDriver()
  engine = createPlainEngine(driver)
  id = (await engine.create({})).id
})

afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  expect(driver.openCells).toBe(0)
})

/** One that nobody has. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

async function serve(kind: string): Promise<{ readonly port: number; readonly program: PlatformProcess }> {
  const port = await freePort()
  const program = await engine.start(id, { command: [process.execPath, servers, kind, `${port}`], background: true })
  return { port, program }
}

async function dial(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  await once(socket, 'connect')
  return socket
}

/** How a connection ends that is not taken in. */
function refusalOf(port: number): Promise<string> {
  return endOf(connect({ port, host: '127.0.0.1' }))
}

function isListening(port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .some((line) => line.includes(`:${hex} 00000000:0000 0A`))
}

/** How it ended: by an error's code, or in order. */
function endOf(socket: Socket): Promise<string> {
  socket.resume()
  return new Promise((resolve) => {
    let code = 'in order'
    socket.once('error', (error: NodeJS.ErrnoException) => (code = error.code ?? error.message))
    socket.once('close', () => resolve(code))
  })
}

describe('a forwarded port', () => {
  test('answers HTTP, several requests at once', async () => {
    const { port } = await serve('http')
    const forward = await engine.ports.forward(id, port)
    expect(forward).toMatchObject({ host: '127.0.0.1', target: port, url: `http://127.0.0.1:${forward.port}` })
    expect(forward.port).not.toBe(port)
    const answers = await Promise.all(Array.from({ length: 20 }, async (_, index) => (await fetch(`${forward.url}/page/${index}`)).text()))
    expect(answers.map((answer) => answer.split(' ')[1])).toEqual(Array.from({ length: 20 }, (_, index) => `/page/${index}`))
  })

  test('carries 50 MB there, and 50 MB back', async () => {
    const { port } = await serve('echo')
    const forward = await engine.ports.forward(id, port)
    const socket = await dial(forward.port)
    const sent = randomBytes(50 * 2 ** 20)
    const hash = createHash('sha256')
    let length = 0
    socket.on('data', (bytes) => {
      hash.update(bytes)
      length += bytes.length
    })
    socket.end(sent)
    await once(socket, 'end')
    expect([length, hash.digest('hex')]).toEqual([sent.length, createHash('sha256').update(sent).digest('hex')])
  })

  test('carries a body of 50 MB over HTTP', async () => {
    const { port } = await serve('http')
    const { url } = await engine.ports.forward(id, port)
    const body = randomBytes(50 * 2 ** 20)
    const answer = await (await fetch(`${url}/in`, { method: 'POST', body })).text()
    expect(answer).toBe(`POST /in ${body.length} ${createHash('sha256').update(body).digest('hex')}`)
  })

  test('carries a WebSocket', async () => {
    const { port } = await serve('http')
    const forward = await engine.ports.forward(id, port)
    const socket = await dial(forward.port)
    const key = randomBytes(16).toString('base64')
    socket.write(`GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n\r\n`)
    const [head] = (await once(socket, 'data')) as [Buffer]
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    expect(head.toString()).toContain(`Sec-WebSocket-Accept: ${accept}`)
    for (const word of ['hello', 'again']) {
      const mask = randomBytes(4)
      const masked = Buffer.from(word).map((byte, index) => byte ^ (mask[index % 4] as number))
      socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | word.length]), mask, masked]))
      const [frame] = (await once(socket, 'data')) as [Buffer]
      expect(frame.subarray(2).toString()).toBe(word)
    }
    socket.destroy()
  })

  test('is ended in one direction while the other goes on', async () => {
    const { port } = await serve('afterEnd')
    const forward = await engine.ports.forward(id, port)
    const socket = await dial(forward.port)
    socket.write(Buffer.alloc(100_000))
    await sleep(50)
    socket.end('!')
    expect(await text(socket)).toBe('100001 bytes')
  })

  test('breaks off outside when it does inside', async () => {
    const { port } = await serve('reset')
    const forward = await engine.ports.forward(id, port)
    const socket = await dial(forward.port)
    const ended = endOf(socket)
    socket.write('x')
    expect(await ended).toBe('ECONNRESET')
  })

  test('is a connection that breaks off when nothing listens any more', async () => {
    const { port, program } = await serve('echo')
    const forward = await engine.ports.forward(id, port)
    await program.kill()
    expect(await refusalOf(forward.port)).toBe('ECONNRESET')
  })

  test('holds back a sender whose bytes nobody reads', async () => {
    const { port } = await serve('deaf')
    const forward = await engine.ports.forward(id, port)
    const socket = await dial(forward.port)
    socket.on('error', () => undefined)
    const before = process.memoryUsage().arrayBuffers
    let sent = 0
    const chunk = Buffer.alloc(2 ** 20)
    for (let round = 0; round < 200; round += 1) {
      const isTaken = await Promise.race([new Promise<boolean>((resolve) => socket.write(chunk, () => resolve(true))), sleep(300, false)])
      if (!isTaken) break
      sent += chunk.length
    }
    // The buffers of two sockets, of a pipe and of a window, whatever the kernel makes of them.
    expect(sent).toBeLessThan(40 * 2 ** 20)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 2 ** 20)
    socket.destroy()
  })

  test('takes in so many at once, and others again when those have left', async () => {
    const { port } = await serve('echo')
    const forward = await engine.ports.forward(id, port)
    const sockets = await Promise.all(Array.from({ length: 256 }, () => dial(forward.port)))
    for (const socket of sockets) {
      socket.write('x')
      await once(socket, 'data')
    }
    expect(await refusalOf(forward.port)).toMatch(/in order|ECONNRESET/)
    for (const socket of sockets) socket.destroy()
    for (let isTaken = false; !isTaken; await sleep(20)) {
      const socket = connect({ port: forward.port, host: '127.0.0.1' })
      socket.write('y')
      isTaken = await Promise.race([once(socket, 'data').then(() => true), endOf(socket).then(() => false)]).catch(() => false)
      socket.destroy()
    }
  })

  test('is reached on the loopback and on no other address', async () => {
    const { port } = await serve('echo')
    const forward = await engine.ports.forward(id, port)
    const others = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).filter(({ address }) => address !== '127.0.0.1'))
    for (const address of ['127.0.0.2', '::1', ...others.map((each) => each.address)]) {
      const socket = connect({ port: forward.port, host: address })
      expect([address, await endOf(socket)]).toEqual([address, expect.stringMatching(/ECONNREFUSED|EADDRNOTAVAIL|EINVAL|ENETUNREACH/)])
    }
    ;(await dial(forward.port)).destroy()
  })

  test('may be a port of choice; one that is in use is named', async () => {
    const { port } = await serve('echo')
    const chosen = await freePort()
    expect((await engine.ports.forward(id, port, { port: chosen })).port).toBe(chosen)
    expect(await rejectionOf(engine.ports.forward(id, port, { port: chosen }))).toMatchObject({
      code: 'conflict',
      message: `port: ${chosen} of 127.0.0.1 is in use`,
    })
  })

  test('is closed twice quietly, with its connections, and listens no more', async () => {
    const { port } = await serve('echo')
    const forward = await engine.ports.forward(id, port)
    const ended = endOf(await dial(forward.port))
    expect(isListening(forward.port)).toBe(true)
    await forward.close()
    await forward.close()
    expect(await ended).toMatch(/ECONNRESET|in order/)
    expect(isListening(forward.port)).toBe(false)
    await using again = await engine.ports.forward(id, port)
    expect(isListening(again.port)).toBe(true)
  })

  test('is closed with a connection that has ended one way and waits for an answer', async () => {
    const { port } = await serve('half')
    const forward = await engine.ports.forward(id, port)
    const socket = await dial(forward.port)
    const greeted = once(socket, 'data')
    socket.end('asked')
    await greeted
    const ended = endOf(socket)
    await forward.close()
    expect(await ended).toMatch(/ECONNRESET|in order/)
  })

  test('is closed with its sandbox, with open connections on it', async () => {
    const { port } = await serve('echo')
    const forward = await engine.ports.forward(id, port)
    const socket = await dial(forward.port)
    const ended = endOf(socket)
    socket.write('x')
    await sleep(20)
    await engine.close(id)
    expect(await ended).toBe('ECONNRESET')
    expect(isListening(forward.port)).toBe(false)
    await forward.close()
  })

  test('of a warden that answers no more is closed all the same', async () => {
    const { port } = await serve('echo')
    const forward = await engine.ports.forward(id, port)
    const socket = await dial(forward.port)
    const ended = endOf(socket)
    socket.write('x')
    driver.cells[0]?.child.kill('SIGSTOP')
    await engine.close(id)
    expect(await ended).toBe('ECONNRESET')
    expect(isListening(forward.port)).toBe(false)
  })

  test('is closed while a connection is on its way that nothing in the cell answers', async () => {
    const { port } = await serve('echo')
    const forward = await engine.ports.forward(id, port)
    const warden = driver.cells[0]?.child
    warden?.kill('SIGSTOP')
    const ended = endOf(await dial(forward.port))
    await forward.close()
    expect([await ended, isListening(forward.port)]).toEqual([expect.stringMatching(/ECONNRESET|in order/), false])
    warden?.kill('SIGCONT')
    // What came too late is let go of, and counts no more.
    const again = await engine.ports.forward(id, port)
    ;(await dial(again.port)).destroy()
  })

  test('breaks off whoever comes while the sandbox is paused, and takes them in later', async () => {
    const { port } = await serve('echo')
    const forward = await engine.ports.forward(id, port)
    await engine.life.pause(id)
    expect(await refusalOf(forward.port)).toBe('ECONNRESET')
    expect(await rejectionOf(engine.ports.forward(id, port))).toMatchObject({ code: 'conflict', message: `sandbox ${id} is paused; resume it first` })
    await engine.life.resume(id)
    const socket = await dial(forward.port)
    socket.write('x')
    expect(String((await once(socket, 'data'))[0])).toBe('x')
    socket.destroy()
  })

  test('keeps an idle sandbox awake as long as bytes go through', async () => {
    const idle = await engine.create({ idle: 3000 })
    id = idle.id
    const { port } = await serve('echo')
    const forward = await engine.ports.forward(id, port)
    const socket = await dial(forward.port)
    for (const end = performance.now() + 3500; performance.now() < end; ) {
      socket.write('x')
      await once(socket, 'data')
      await sleep(100)
    }
    expect((await engine.info(id)).state).toBe('running')
    const ended = endOf(socket)
    expect(await ended).toBe('ECONNRESET')
  })
})

describe('waiting for a port', () => {
  test('resolves once something listens', async () => {
    const port = await freePort()
    const waited = engine.ports.waitFor(id, port)
    await sleep(200)
    await engine.start(id, { command: [process.execPath, servers, 'echo', `${port}`], background: true })
    await waited
    ;(await dial((await engine.ports.forward(id, port)).port)).destroy()
  })

  test('sees what listens on IPv6 alone', async () => {
    const port = await freePort()
    await engine.start(id, { command: [process.execPath, servers, 'echo', `${port}`, '::1'], background: true })
    const forward = await engine.ports.forward(id, port)
    const socket = await dial(forward.port)
    socket.write('six')
    expect(String((await once(socket, 'data'))[0])).toBe('six')
    socket.destroy()
  })

  test('does not disturb the server', async () => {
    const port = await freePort()
    const program = await engine.start(id, {
      command: [process.execPath, '-e', `require('net').createServer(() => console.log('someone')).listen(${port}, '127.0.0.1')`],
      background: true,
    })
    await engine.ports.waitFor(id, port)
    await sleep(100)
    const output = text(
      (async function* () {
        for await (const event of program.output) if (event.type === 'stdout') yield event.bytes
      })(),
    )
    await program.kill()
    expect(await output).toBe('')
  })

  test('that is in vain says so in time', async () => {
    const port = await freePort()
    const begun = performance.now()
    expect(await rejectionOf(engine.ports.waitFor(id, port, { timeout: 300 }))).toMatchObject({
      code: 'not-found',
      message: `port: nothing listens on ${port} in sandbox ${id} after 300ms`,
    })
    expect(performance.now() - begun).toBeLessThan(10_000)
    expect(await rejectionOf(engine.ports.forward(id, port, { waitFor: '200ms' }))).toMatchObject({ code: 'not-found' })
  })

  test('ends with its sandbox, and when it is aborted', async () => {
    const port = await freePort()
    const controller = new AbortController()
    const aborted = rejectionOf(engine.ports.waitFor(id, port, { signal: controller.signal }))
    const closed = rejectionOf(engine.ports.waitFor(id, port))
    await sleep(50)
    controller.abort(new Error('enough'))
    expect(await aborted).toMatchObject({ message: 'enough' })
    await engine.close(id)
    expect(await closed).toMatchObject({ code: 'closed' })
  })

  test('is called off at once, also while nothing in the cell answers', async () => {
    const port = await freePort()
    const controller = new AbortController()
    const warden = driver.cells[0]?.child
    warden?.kill('SIGSTOP')
    const calls = [engine.ports.waitFor(id, port, { signal: controller.signal }), engine.ports.forward(id, port, { signal: controller.signal })]
    const ended = Promise.all(calls.map(rejectionOf))
    await sleep(50)
    controller.abort(new Error('enough'))
    expect(await ended).toEqual([controller.signal.reason, controller.signal.reason])
    warden?.kill('SIGCONT')
  })

  test('is not needed for a forward: waitFor 0', async () => {
    const port = await freePort()
    const forward = await engine.ports.forward(id, port, { waitFor: 0 })
    expect(await refusalOf(forward.port)).toBe('ECONNRESET')
  })
})

test('what is no port is refused by its name', async () => {
  for (const port of [0, -1, 65_536, 1.5, Number.NaN, '80', null] as number[]) {
    const refusal = { code: 'invalid', message: expect.stringMatching(/^port: /) as string }
    expect(await rejectionOf(engine.ports.forward(id, port))).toMatchObject(refusal)
    expect(await rejectionOf(engine.ports.waitFor(id, port))).toMatchObject(refusal)
    if (port !== null)
      expect(await rejectionOf(engine.ports.forward(id, 80, { port }))).toMatchObject({
        code: 'invalid',
        message: expect.stringMatching(/^options\.port: /) as string,
      })
  }
  expect(await rejectionOf(engine.ports.forward(id, 80, { waitFor: 'long' }))).toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/^waitFor: /) as string,
  })
  expect(await rejectionOf(engine.ports.forward(id, 80, { hots: 1 } as object))).toMatchObject({ code: 'invalid' })
})
