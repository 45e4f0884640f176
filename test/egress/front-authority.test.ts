import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type PeerCertificate, TLSSocket } from 'node:tls'
import { once } from 'node:events'
import { type AddressInfo, createServer, isIP } from 'node:net'
import { execFileSync } from 'node:child_process'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Authority, loadAuthority } from '../../src/egress/authority.js'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'authority-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

async function peerSeenBy(authority: Authority, { host, trusted = authority }: { host: string; trusted?: Authority }): Promise<PeerCertificate> {
  const server = createServer((raw) => {
    const socket = new TLSSocket(raw, { isServer: true, secureContext: authority.contextFor(host) })
    socket.on('error', () => undefined)
    socket.end('hello')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const socket = connect({ port, host: '127.0.0.1', servername: isIP(host) ? '' : host, ca: trusted.certificate, checkServerIdentity: () => undefined })
    await once(socket, 'secureConnect')
    const certificate = socket.getPeerCertificate()
    socket.destroy()
    return certificate
  } finally {
    server.close()
  }
}

test('its key is readable by nobody else, and the next process has the same authority', async () => {
  const first = loadAuthority({ folder })
  const second = loadAuthority({ folder })

  expect(statSync(join(folder, 'egress-authority-key.pem')).mode & 0o777).toBe(0o600)
  expect(new X509Certificate(second.certificate).fingerprint256).not.toBe('')
  expect(new X509Certificate(second.certificate).serialNumber).toBe(new X509Certificate(first.certificate).serialNumber)
  const peer = await peerSeenBy(second, { host: 'api.example.com', trusted: first })
  expect(peer.subjectaltname).toBe('DNS:api.example.com')
})

test('another authority is not trusted', async () => {
  const other = mkdtempSync(join(tmpdir(), 'authority-'))
  try {
    const trusted = loadAuthority({ folder: other })
    await expect(peerSeenBy(loadAuthority({ folder }), { host: 'api.example.com', trusted })).rejects.toThrow()
  } finally {
    rmSync(other, { recursive: true, force: true })
  }
})

test.each([
  ['203.0.113.7', 'IP Address:203.0.113.7'],
  ['2001:db8::1', 'IP Address:2001:DB8:0:0:0:0:0:1'],
  ['::1', 'IP Address:0:0:0:0:0:0:0:1'],
  ['2001:db8:1:2:3:4:5:6', 'IP Address:2001:DB8:1:2:3:4:5:6'],
  [`${'a'.repeat(60)}.${'b'.repeat(60)}.example.com`, `DNS:${'a'.repeat(60)}.${'b'.repeat(60)}.example.com`],
])('a certificate for %s stands for that host alone', async (host, name) => {
  expect((await peerSeenBy(loadAuthority({ folder }), { host })).subjectaltname).toBe(name)
})

test('a certificate is made once a host', () => {
  const authority = loadAuthority({ folder })

  expect(authority.contextFor('a.example')).toBe(authority.contextFor('a.example'))
  expect(authority.contextFor('a.example')).not.toBe(authority.contextFor('b.example'))
})

test('many hosts do not fill the memory: those not asked for lately are made again', () => {
  const authority = loadAuthority({ folder })
  const first = authority.contextFor('first.example')
  for (let index = 0; index < 500; index += 1) authority.contextFor(`host-${index}.example`)

  expect(authority.contextFor('first.example')).not.toBe(first)
})

test('what strict verifiers ask of it is there', () => {
  const { certificate } = loadAuthority({ folder })
  const path = join(folder, 'authority.pem')
  writeFileSync(path, certificate)

  expect(execFileSync('openssl', ['verify', '-x509_strict', '-CAfile', path, path], { encoding: 'utf8' })).toBe(`${path}: OK\n`)
  const text = execFileSync('openssl', ['x509', '-in', path, '-noout', '-ext', 'basicConstraints,keyUsage'], { encoding: 'utf8' })
  expect(text).toMatch(/Basic Constraints: critical\s+CA:TRUE, pathlen:0/)
  expect(text).toMatch(/Key Usage: critical\s+Certificate Sign, CRL Sign/)
})

test('a damaged key is refused, not replaced', () => {
  writeFileSync(join(folder, 'egress-authority-key.pem'), 'nothing', { mode: 0o600 })

  expect(() => loadAuthority({ folder })).toThrow('holds no P-256 private key')
})
