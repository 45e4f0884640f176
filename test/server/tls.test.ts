import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.js'
import type { Platform } from '../../src/contract/platform.js'
import { localActor, openLedger } from '../../src/ledger.js'
import { type ServeOptions, type Serving, startServing } from '../../src/serve.js'
import { nodeTransport } from '../../src/sys/http-transport.js'
import { testAuthority } from '../egress/front-servers.js'
import { testUnless } from '../unless.js'
import { ask } from './own-server.js'

const authority = testAuthority()
const stranger = testAuthority()

let folder: string
let key: string
let serving: Serving | undefined
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-tls-'))
  await using ledger = await openLedger({ folder: join(folder, 'state') })
  key = (await ledger.keys.create({ tenant: 'default', scopes: ['read'] }, localActor)).secret
})
afterEach(async () => {
  await serving?.close()
  serving = undefined
  rmSync(folder, { recursive: true, force: true })
})

/** In one step, as those who renew certificates do it. */
function put(name: string, text: string): string {
  writeFileSync(join(folder, `${name}.new`), text)
  renameSync(join(folder, `${name}.new`), join(folder, name))
  return join(folder, name)
}

function putPair({ cert, key: secret }: { readonly cert: string; readonly key: string }) {
  return { cert: put('cert.pem', cert), key: put('key.pem', secret) }
}

async function serve(more: Partial<NonNullable<ServeOptions['tls']>> = {}): Promise<{ readonly url: string; readonly port: number }> {
  const tls = { ...putPair(authority.pairFor('localhost')), ...more }
  serving = await startServing({ at: { host: '127.0.0.1', port: 0 }, state: join(folder, 'state'), tls })
  const { port } = new URL(serving.url)
  return { url: `https://localhost:${port}`, port: Number(port) }
}

/** What a server shows, and how it goes on. */
function shake(port: number, options: { readonly cert?: string; readonly key?: string; readonly maxVersion?: 'TLSv1.1' | 'TLSv1.2' } = {}) {
  return new Promise<TLSSocket>((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: authority.certificate, ...options })
    socket.once('secureConnect', () => resolve(socket))
    socket.once('error', reject)
  })
}

async function serialOf(port: number): Promise<string> {
  const socket = await shake(port)
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

const noOpenssl = !existsSync('/usr/bin/openssl') && 'openssl, which makes certificates of clients, is not installed'

/** Vouched for by itself. */
function clientPair(name: string): { readonly cert: string; readonly key: string } {
  const [cert, secret] = [join(folder, `${name}.pem`), join(folder, `${name}-key.pem`)]
  const how = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-addext', 'extendedKeyUsage=clientAuth']
  execFileSync('/usr/bin/openssl', ['req', '-x509', ...how, '-subj', `/CN=${name}`, '-keyout', secret, '-out', cert], { stdio: 'ignore' })
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(secret, 'utf8') }
}

async function all(client: Platform): Promise<unknown[]> {
  const found: unknown[] = []
  for await (const info of client.list()) found.push(info)
  return found
}

describe('a server with a certificate', () => {
  test('is reached by those who trust its authority, and not in the clear', async () => {
    const { url, port } = await serve()
    await using client = createClient({ key, transport: nodeTransport({ place: { url }, ca: authority.certificate }) })
    expect(await all(client)).toEqual([])
    await using careful = createClient({ key, transport: nodeTransport({ place: { url }, ca: stranger.certificate }) })
    await expect(all(careful)).rejects.toMatchObject({ code: 'unavailable' })
    await expect(ask(port, '/v1/health')).rejects.toThrow()
  })

  test('speaks nothing older than TLS 1.2', async () => {
    const { port } = await serve()
    await expect(shake(port, { maxVersion: 'TLSv1.1' })).rejects.toThrow()
    ;(await shake(port, { maxVersion: 'TLSv1.2' })).destroy()
  })

  test('shows another once its files have changed; what is open goes on, and half of a change changes nothing', async () => {
    const { port } = await serve()
    const before = await serialOf(port)
    const open = await shake(port)
    const next = authority.pairFor('localhost')
    put('cert.pem', next.cert)
    await new Promise((resolve) => setTimeout(resolve, 3000))
    expect(await serialOf(port)).toBe(before)
    put('key.pem', next.key)
    await expect.poll(() => serialOf(port), { interval: 200 }).not.toBe(before)
    open.write(`GET /v1/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`)
    const heard = await new Promise<string>((resolve) => open.once('data', (piece: Buffer) => resolve(piece.toString())))
    expect(heard).toMatch(/^HTTP\/1\.1 200 /)
    open.destroy()
  })

  testUnless(noOpenssl)('that wants one too lets in nobody without, nor with a stranger’s, and still asks for a key', async () => {
    const [known, unknown] = [clientPair('known'), clientPair('unknown')]
    const { url } = await serve({ clientCa: put('ca.pem', known.cert) })
    const by = (pair: { readonly cert?: string; readonly key?: string }, secret = key) =>
      createClient({ key: secret, transport: nodeTransport({ place: { url }, ca: authority.certificate, ...pair }) })
    await using ours = by(known)
    expect(await all(ours)).toEqual([])
    await using nobody = by({})
    await using other = by(unknown)
    for (const client of [nobody, other]) await expect(all(client)).rejects.toMatchObject({ code: 'unavailable' })
    await using keyless = by(known, 'gbx_wrong')
    await expect(all(keyless)).rejects.toMatchObject({ code: 'unauthorized' })
  })

  test('whose files are missing or no pair does not begin, and says which', async () => {
    const at = { host: '127.0.0.1', port: 0 }
    const state = join(folder, 'state')
    const pair = putPair(authority.pairFor('localhost'))
    const missing = startServing({ at, state, tls: { ...pair, key: join(folder, 'none.pem') } })
    await expect(missing).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining('tls-key') as string })
    const unpaired = startServing({ at, state, tls: { ...pair, key: put('other.pem', authority.pairFor('localhost').key) } })
    await expect(unpaired).rejects.toMatchObject({ code: 'invalid' })
  })
})

test('where its state is kept is made for its owner alone, and refused when others may write there', async () => {
  const state = join(folder, 'new', 'state')
  const at = { socket: join(folder, 's.sock') }
  serving = await startServing({ at, state })
  expect(statSync(state).mode & 0o777).toBe(0o700)
  await serving.close()
  chmodSync(state, 0o777)
  await expect(startServing({ at, state })).rejects.toMatchObject({ code: 'unavailable', hint: `chmod go-w ${state}` })
})

test('S-10 another address is listened at with a key and the word for it, and never in silence', async () => {
  // Nobody has this address: that it cannot be had is found only by whoever was let try.
  const at = { host: '192.0.2.1', port: 0 }
  const state = join(folder, 'state')
  await expect(startServing({ at, state })).rejects.toMatchObject({ code: 'invalid' })
  const tried = startServing({ at, state, insecure: true })
  await expect(tried).rejects.toThrow(/192\.0\.2\.1|listen/)
  await expect(tried).rejects.not.toMatchObject({ message: expect.stringMatching(/certificate|needs a key/) as string })
})
