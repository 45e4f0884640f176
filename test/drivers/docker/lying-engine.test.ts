import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createDockerDriver } from '../../../src/drivers/docker/driver.js'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { type DockerEngine, noDockerEngine, startDockerEngine } from '../../docker-engine.js'
import { skipGroup } from '../../unless.js'
import { idOfCell, processesOf } from './processes.js'

const impossible = noDockerEngine()
let engine: DockerEngine
let liar: Server | undefined

beforeAll(async () => {
  if (impossible === undefined) engine = await startDockerEngine()
})
afterEach(() => {
  liar?.close()
  liar = undefined
})
afterAll(async () => {
  await engine?.[Symbol.asyncDispose]()
})

interface Asked {
  User: string
  readonly HostConfig: { SecurityOpt: string[]; Mounts: { Source: string; Target: string }[] }
}

/** The same engine, but for what it makes of a wish for a container, and for what it answers without having done it. */
async function lie(twist: (asked: Asked) => void, answer?: (request: string) => string | undefined): Promise<string> {
  const path = join(engine.folder, 'liar')
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let head = Buffer.alloc(0)
    const onData = (bytes: Buffer): void => {
      head = Buffer.concat([head, bytes])
      const end = head.indexOf('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(head.toString('latin1', 0, end))?.[1] ?? 0)
      if (end === -1 || head.length < end + 4 + length) return
      socket.off('data', onData)
      const lied = answer?.(head.toString('latin1', 0, end))
      if (lied !== undefined) {
        socket.end(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${lied.length}\r\nConnection: close\r\n\r\n${lied}`)
        return
      }
      const real = connect({ path: engine.address.path, allowHalfOpen: true })
      real.write(twisted(head, { end, length, twist }))
      // Who lies about ends does not hand on that a stream has ended either.
      socket.pipe(real, { end: answer === undefined }).pipe(socket)
      real.on('error', () => socket.destroy())
      socket.on('error', () => real.destroy())
    }
    socket.on('data', onData)
  })
  liar = server
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return path
}

function twisted(request: Buffer, { end, length, twist }: { readonly end: number; readonly length: number; readonly twist: (asked: Asked) => void }): Buffer {
  const head = request.toString('latin1', 0, end)
  if (!/^POST \S*\/containers\/create/.test(head)) return request
  const asked = JSON.parse(request.toString('utf8', end + 4, end + 4 + length)) as Asked
  twist(asked)
  const body = Buffer.from(JSON.stringify(asked))
  return Buffer.concat([Buffer.from(`${head.replace(/content-length: \d+/i, `Content-Length: ${body.length}`)}\r\n\r\n`), body])
}

async function create(path: string): Promise<unknown> {
  const driver = createDockerDriver({ address: { kind: 'socket', path } })
  const platform = createPlatform({ drivers: [driver] })
  try {
    const sandbox = await Sandbox.create({ platform, driver: 'docker' })
    return await sandbox.run(['true'])
  } catch (error) {
    return error
  } finally {
    await platform[Symbol.asyncDispose]()
  }
}

describe('an engine that does not do what it was asked for', () => {
  skipGroup(impossible ?? false)

  test('is found out by the kernel, and nothing of a guest runs', async () => {
    expect(await create(await lie(() => undefined))).toMatchObject({ outcome: { kind: 'exited', code: 0 } })
    liar?.close()
    const unfiltered = await create(await lie(({ HostConfig }) => (HostConfig.SecurityOpt = ['no-new-privileges', 'seccomp=unconfined'])))
    expect(unfiltered).toMatchObject({ code: 'not-enforced', message: expect.stringContaining('filters') })
    liar?.close()
    const other = await create(await lie((asked) => (asked.User = '1234:1234')))
    // What is not ours is somewhere else, and gets nothing of this machine.
    expect(other).toMatchObject({ code: 'unsupported', message: expect.stringContaining('is made of folders of this machine') })
    liar?.close()
    const swapped = await create(
      await lie(({ HostConfig }) => {
        for (const mount of HostConfig.Mounts) if (mount.Source === '/usr') mount.Source = '/dev/shm'
      }),
    )
    expect(swapped).toMatchObject({ message: expect.stringContaining('the container engine shows something else than /usr of this machine') })
    expect(await engine.client.call('GET', '/containers/json', { query: { all: '1' } })).toEqual([])
  })

  test('and says that a container is gone which is not, keeps nothing of it alive', async () => {
    const path = await lie(
      () => undefined,
      (request) => (/^(POST \S+\/(wait|kill)|DELETE )/.test(request) ? '{"StatusCode":0}' : undefined),
    )
    const platform = createPlatform({ drivers: [createDockerDriver({ address: { kind: 'socket', path } })] })
    const sandbox = await Sandbox.create({ platform, driver: 'docker' })
    await sandbox.spawn(['sleep', '3000'])
    const own = idOfCell(sandbox.id)
    expect(processesOf(own).length).toBeGreaterThan(2)
    await sandbox.close()
    expect(processesOf(own)).toEqual([])
    await platform[Symbol.asyncDispose]()
  })
})
