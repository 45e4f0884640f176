import type { Warden } from '../channel/index.js'
import { SandboxError } from '../contract/errors.js'
import { FileOperation, type FilesHost } from './file-operation.js'
import type { WayOut } from './network.js'

/** Listeners come first in these tables, so that connections cannot push them beyond this. */
const mostBytes = 512 * 1024
const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6']

/** The addresses, as the kernel writes them, at which a connection to 127.0.0.1 or ::1 is taken in. */
const reached = [
  '00000000',
  '0100007F',
  '00000000000000000000000000000000',
  '00000000000000000000000001000000',
  '0000000000000000FFFF00000100007F',
  '0000000000000000FFFF000000000000',
]
const listening = '0A'

export interface ListeningCell {
  readonly files: FilesHost
  readonly warden: Pick<Warden, 'connect'>
  readonly network: Pick<WayOut, 'mayListenAt'> | undefined
  readonly signal: AbortSignal | undefined
}

/** Whether something listens on a port of the cell's loopback: read from the cell's own tables, so that no server is disturbed. */
export async function isListening({ files, warden, network, signal }: ListeningCell, port: number): Promise<boolean> {
  try {
    // The tables do not tell a door of the way out from a server; the warden does, and connects to none of its own.
    for (const table of tables)
      if (hasListener(await readTable(files, table, signal), port)) return network?.mayListenAt(port) ? await takesConnection(warden, port) : true
    return false
  } catch (error) {
    // A cell whose programs may not read this is asked by connecting.
    if (error instanceof SandboxError && (error.code === 'denied' || error.code === 'not-found')) return takesConnection(warden, port)
    throw error
  }
}

/** `sl: LOCAL:PORT REMOTE:PORT STATE …`, in hexadecimal digits. */
function hasListener(table: string, port: number): boolean {
  const digits = port.toString(16).toUpperCase().padStart(4, '0')
  return table.split('\n').some((line) => {
    const [, local = '', , state] = line.trim().split(/\s+/)
    const [address = '', ownPort] = local.split(':')
    return state === listening && ownPort === digits && reached.includes(address)
  })
}

function readTable(host: FilesHost, path: string, signal: AbortSignal | undefined): Promise<string> {
  const order = { host, call: { name: 'ports.waitFor', path }, user: host.defaultUser, signal }
  return FileOperation.run(order, async ({ client }) => {
    const { bytes } = await client.read(new TextEncoder().encode(path), { offset: 0, length: mostBytes })
    const decoder = new TextDecoder()
    let table = ''
    for await (const piece of bytes) table += decoder.decode(piece, { stream: true })
    return table
  })
}

async function takesConnection(warden: ListeningCell['warden'], port: number): Promise<boolean> {
  try {
    const connection = await warden.connect(port)
    await connection.destroy()
    return true
  } catch (error) {
    if (error instanceof SandboxError && (error.code === 'not-found' || error.code === 'busy')) return false
    throw error
  }
}
