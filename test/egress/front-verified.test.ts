import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { makeCertificate } from '../../src/egress/authority-der.js'
import { openFront } from './front-harness.js'
import { askHttp2 } from './hostile-guest.js'

const dayMs = 86_400_000
const keys = () => generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
const issuer = keys()
const days = (from: number, to: number) => ({ notBefore: new Date(Date.now() + from * dayMs), notAfter: new Date(Date.now() + to * dayMs) })
const trusted = makeCertificate({ subject: 'test', issuer: 'test', issuerKey: issuer, publicKey: issuer.publicKey, serial: Buffer.of(1), ...days(-9, 9) })

interface Shown {
  readonly host?: string
  readonly from?: number
  readonly to?: number
  /** By itself, and not by the authority that is trusted. */
  readonly isOwn?: boolean
}

/** A server with such a certificate, and how often it was asked. */
async function serveWith({ host = 'api.test', from = -1, to = 1, isOwn = false }: Shown) {
  const own = keys()
  const by = isOwn ? { issuer: 'api.test', issuerKey: own } : { issuer: 'test', issuerKey: issuer }
  const cert = makeCertificate({ ...by, subject: 'api.test', publicKey: own.publicKey, serial: Buffer.of(2), host, ...days(from, to) })
  let asked = 0
  const server = createServer({ cert, key: own.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }, (_request, response) => {
    asked += 1
    response.end('ok')
  })
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    asked: () => asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

test.each<readonly [string, Shown, string]>([
  ['for it', {}, ''],
  ['of yesterday', { from: -3, to: -2 }, 'CERT_HAS_EXPIRED'],
  ['of tomorrow', { from: 2, to: 3 }, 'CERT_NOT_YET_VALID'],
  ['by itself', { isOwn: true }, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ['for a host above it', { host: 'test' }, 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ['for a host below it', { host: 'x.api.test' }, 'ERR_TLS_CERT_ALTNAME_INVALID'],
])('a server that shows a certificate %s', async (_name, shown, problem) => {
  await using server = await serveWith(shown)
  const host = `api.test:${server.port}`
  const network = { allow: [host], credentials: [{ host, header: 'authorization', value: 'secret' }] }
  await using front = await openFront({ network, hosts: { 'api.test': '127.0.0.1' }, trusted: [trusted] })

  const got = await askHttp2(front, server)

  expect(got.status).toBe(problem === '' ? 200 : 502)
  expect(got.body).toBe(problem === '' ? 'ok' : `glovebox: TLS to api.test: ${problem}\n`)
  expect(server.asked()).toBe(problem === '' ? 1 : 0)
})
