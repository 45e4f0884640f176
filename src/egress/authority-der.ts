/**
 * Certificates of X.509 version 3, as much of them as an authority needs that vouches for the hosts whose TLS is terminated: P-256 keys, ECDSA with SHA-256,
 * a name of one part, and the extensions that strict verifiers ask for (RFC 5280). Only made here, never read.
 */
import { createHash, type KeyObject, sign } from 'node:crypto'
import { bytesOfAddress, parseAddress } from '../policy/network-address.js'

export interface CertificatePlan {
  /** Common name; at most 64 bytes. */
  readonly subject: string
  readonly issuer: string
  readonly publicKey: KeyObject
  /** Of the issuer. */
  readonly issuerKey: { readonly privateKey: KeyObject; readonly publicKey: KeyObject }
  /** Positive, at most 20 bytes. */
  readonly serial: Buffer
  readonly notBefore: Date
  readonly notAfter: Date
  /** The host that it stands for, an address without brackets; undefined: an authority. */
  readonly host?: string
}

const tags = { boolean: 0x01, integer: 0x02, bits: 0x03, octets: 0x04, oid: 0x06, text: 0x0c, sequence: 0x30, set: 0x31, utcTime: 0x17, time: 0x18 }

const oids = {
  commonName: '2.5.4.3',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
}

/** As PEM. */
export function makeCertificate(plan: CertificatePlan): string {
  const algorithm = sequence(oid(oids.ecdsaWithSha256))
  const body = sequence(
    tagged(0xa0, integer(Buffer.of(2))),
    integer(plan.serial),
    algorithm,
    nameOf(plan.issuer),
    sequence(time(plan.notBefore), time(plan.notAfter)),
    nameOf(plan.subject),
    plan.publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...extensionsOf(plan))),
  )
  const signature = sign('sha256', body, plan.issuerKey.privateKey)
  const der = sequence(body, algorithm, bits(signature))
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

/** As RFC 5280 4.2.1.2 has it: of the key alone, without what surrounds it. */
export function keyIdentifier(publicKey: KeyObject): Buffer {
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const point = Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
  return createHash('sha1').update(point).digest()
}

function extensionsOf(plan: CertificatePlan): Buffer[] {
  const own = extension(oids.subjectKeyIdentifier, octets(keyIdentifier(plan.publicKey)))
  const issuer = extension(oids.authorityKeyIdentifier, sequence(tagged(0x80, keyIdentifier(plan.issuerKey.publicKey))))
  if (plan.host === undefined) {
    // An authority for hosts alone: it vouches for no further authority.
    const authority = critical(oids.basicConstraints, sequence(tagged(tags.boolean, Buffer.of(0xff)), integer(Buffer.of(0))))
    return [authority, critical(oids.keyUsage, tagged(tags.bits, Buffer.of(1, 0x06))), own]
  }
  return [
    critical(oids.basicConstraints, sequence()),
    critical(oids.keyUsage, tagged(tags.bits, Buffer.of(7, 0x80))),
    extension(oids.extendedKeyUsage, sequence(oid(oids.serverAuth))),
    extension(oids.subjectAltName, sequence(hostName(plan.host))),
    own,
    issuer,
  ]
}

function hostName(host: string): Buffer {
  const address = parseAddress(host)
  return address === undefined ? tagged(0x82, Buffer.from(host, 'latin1')) : tagged(0x87, Buffer.from(bytesOfAddress(address)))
}

function extension(name: string, value: Buffer): Buffer {
  return sequence(oid(name), octets(value))
}

function critical(name: string, value: Buffer): Buffer {
  return sequence(oid(name), tagged(tags.boolean, Buffer.of(0xff)), octets(value))
}

function nameOf(text: string): Buffer {
  return sequence(tagged(tags.set, sequence(oid(oids.commonName), tagged(tags.text, Buffer.from(text)))))
}

/** Two digits of the year before 2050, four from then on. */
function time(date: Date): Buffer {
  const text = `${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`
  return date.getUTCFullYear() < 2050 ? tagged(tags.utcTime, Buffer.from(text.slice(2))) : tagged(tags.time, Buffer.from(text))
}

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  return tagged(tags.oid, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

function base128(value: number): number[] {
  const groups = [value & 0x7f]
  for (let left = value >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80)
  return groups
}

/** Not negative: a leading bit that is set gets a byte before it, and bytes that say nothing go. */
function integer(value: Buffer): Buffer {
  const start = value.findIndex((byte) => byte !== 0)
  const bytes = start < 0 ? Buffer.of(0) : value.subarray(start)
  return tagged(tags.integer, (bytes[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes)
}

function bits(value: Buffer): Buffer {
  return tagged(tags.bits, Buffer.concat([Buffer.of(0), value]))
}

function octets(value: Buffer): Buffer {
  return tagged(tags.octets, value)
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(tags.sequence, Buffer.concat(parts))
}

function tagged(tag: number, value: Buffer): Buffer {
  return Buffer.concat([Buffer.from([tag, ...lengthOf(value.length)]), value])
}

function lengthOf(length: number): number[] {
  if (length < 0x80) return [length]
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
}
