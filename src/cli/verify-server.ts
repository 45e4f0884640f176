import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ServerView, TenantView } from '../conformance/index.js'
import { SandboxError } from '../contract/errors.js'
import { type Ledger, localActor, openLedger } from '../ledger.js'
import { startServing } from '../serve.js'
import { askServer, listeningAt, talk } from '../verify/index.js'

/** A server of this installation on a port of the loopback, with its state in a folder of its own, two tenants and a sandbox of each. */
export async function serveForVerify(): Promise<ServerView & AsyncDisposable> {
  const folder = mkdtempSync(join(tmpdir(), 'gbx-verify-server-'))
  try {
    const server = await openServer(folder)
    return {
      ...server,
      [Symbol.asyncDispose]: async () => {
        await server[Symbol.asyncDispose]()
        rmSync(folder, { recursive: true })
      },
    }
  } catch (error) {
    rmSync(folder, { recursive: true })
    throw error
  }
}

async function openServer(folder: string): Promise<ServerView & AsyncDisposable> {
  const state = join(folder, 'server')
  let logged = ''
  const log = {
    write: (text: string): boolean => {
      logged += text
      return true
    },
  }
  const serving = await startServing({ at: { host: '127.0.0.1', port: 0 }, state, log: log as NodeJS.WriteStream })
  const port = Number(new URL(serving.url).port)
  const ledger = await openLedger({ folder: state })
  const close = async (): Promise<void> => {
    await ledger[Symbol.asyncDispose]()
    await serving.close({ graceMs: 0 })
  }
  try {
    const [first, second] = [await moveIn('verify-a', ledger, port), await moveIn('verify-b', ledger, port)]
    return {
      first,
      second,
      keys: await lesserKeys(ledger),
      request: (request) => askServer(port, request),
      raw: async (bytes) => (await talk(port, bytes)).toString('latin1'),
      addresses: () => Promise.resolve(listeningAt(port)),
      socket: () => lookAtSocket(folder),
      expose: () => expose(folder),
      log: () => logged,
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function moveIn(name: string, ledger: Ledger, port: number): Promise<TenantView> {
  await ledger.tenants.create({ id: name }, localActor)
  const { secret: key } = await ledger.keys.create({ tenant: name, scopes: ['run'] }, localActor)
  const { status, body } = await askServer(port, { method: 'POST', path: '/v1/sandboxes', key, body: '{}' })
  const { id } = (status < 300 ? JSON.parse(body.slice(body.indexOf('{'), body.lastIndexOf('}') + 1)) : {}) as { id?: string }
  if (id === undefined) throw new SandboxError('unavailable', `the server made no sandbox: ${status} ${body.slice(0, 300)}`)
  return { name, key, sandbox: id }
}

async function lesserKeys({ keys }: Ledger): Promise<ServerView['keys']> {
  const tenant = 'verify-a'
  const reading = await keys.create({ tenant, scopes: ['read'] }, localActor)
  const revoked = await keys.create({ tenant }, localActor)
  await keys.revoke(revoked.id, localActor)
  const expired = await keys.create({ tenant, expires: new Date(Date.now() + 50).toISOString() }, localActor)
  await new Promise((resolve) => setTimeout(resolve, 60))
  return { reading: reading.secret, revoked: revoked.secret, expired: expired.secret }
}

async function lookAtSocket(folder: string): Promise<{ mode: number; isOwn: boolean; path: string }> {
  const path = join(folder, 'verify.sock')
  const serving = await startServing({ at: { socket: path }, state: join(folder, 'socket-server') })
  try {
    const { mode, uid } = statSync(path)
    return { mode: mode & 0o777, isOwn: uid === process.getuid?.(), path }
  } finally {
    await serving.close({ graceMs: 0 })
  }
}

/** It must not get as far as to listen. */
async function expose(folder: string): Promise<string> {
  try {
    const serving = await startServing({ at: { host: '0.0.0.0', port: 0 }, state: join(folder, 'exposed-server') })
    await serving.close({ graceMs: 0 })
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
