import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { makeTempFolder } from '../compose.js'

/** What the demo plants on the host, for its programs to go after: a secret file, paths to write to, a listener. */
export interface DemoStage extends AsyncDisposable {
  readonly secretPath: string
  readonly secret: string
  /** Where nothing is until somebody gets through: one in a folder of the demo's own, one in the system's. */
  readonly writePaths: readonly string[]
  readonly hugePath: string
  readonly port: number
  /** How many connections the listener saw since the last call. */
  takeConnections(): Promise<number>
  /** Whether something was written since the last call; takes it away again. */
  takeWritten(): Promise<boolean>
}

export async function plantStage(): Promise<DemoStage> {
  const folder = await makeTempFolder('glovebox-demo-')
  const secretPath = join(folder, 'secret')
  const secret = randomBytes(8).toString('hex')
  await writeFile(secretPath, `${secret}\n`, { mode: 0o600 })
  const writePaths = [join(folder, 'written'), `/usr/glovebox-demo-${secret}`]
  const listener = await startListener()
  return {
    secretPath,
    secret,
    writePaths,
    hugePath: join(folder, 'huge'),
    port: listener.port,
    takeConnections: listener.takeConnections,
    async takeWritten() {
      const written = writePaths.filter((path) => existsSync(path))
      for (const path of written) await rm(path)
      return written.length > 0
    },
    async [Symbol.asyncDispose]() {
      await listener.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function startListener() {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    socket.on('error', () => undefined)
    socket.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    takeConnections: async (): Promise<number> => {
      // Connections are accepted in the order they came, so when our own has been seen, every earlier one has been counted.
      const seen = once(server, 'connection')
      const own = connect(port, '127.0.0.1').on('error', () => undefined)
      await seen
      own.destroy()
      const before = connections - 1
      connections = 0
      return before
    },
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}
