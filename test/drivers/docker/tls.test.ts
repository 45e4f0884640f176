import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDockerDriver } from '../../../src/drivers/docker/driver.js'
import { createPlatform, Sandbox } from '../../../src/index.js'
import { engineAddress } from '../../../src/sys/docker/address.js'
import { createEngineClient } from '../../../src/sys/docker/client.js'
import { type DockerEngine, noDockerEngine, startDockerEngine } from '../../docker-engine.js'
import { rejectionOf } from '../../engine/collect.js'
import { skipGroup } from '../../unless.js'

const impossible = noDockerEngine() ?? (existsSync('/usr/bin/openssl') ? undefined : 'openssl, which makes the certificates, is not installed')
let engine: DockerEngine
let env: Record<string, string>
let port: number

/** One authority, whom both sides trust; a daemon that is 127.0.0.1; and us. */
function makeCertificates(folder: string): void {
  mkdirSync(folder)
  const openssl = (...args: string[]): void => void execFileSync('/usr/bin/openssl', args, { cwd: folder, stdio: 'ignore' })
  const request = (name: string): void =>
    openssl('req', '-newkey', 'rsa:2048', '-nodes', '-keyout', `${name}-key.pem`, '-subj', `/CN=${name}`, '-out', `${name}.csr`)
  openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=authority', '-keyout', 'ca-key.pem', '-out', 'ca.pem')
  for (const name of ['daemon', 'client']) {
    request(name)
    writeFileSync(join(folder, `${name}.ext`), name === 'daemon' ? 'subjectAltName=IP:127.0.0.1' : 'extendedKeyUsage=clientAuth')
    const signing = ['-CA', 'ca.pem', '-CAkey', 'ca-key.pem', '-CAcreateserial', '-days', '2', '-extfile', `${name}.ext`]
    openssl('x509', '-req', '-in', `${name}.csr`, ...signing, '-out', `${name}.pem`)
  }
  for (const [from, to] of [
    ['client.pem', 'cert.pem'],
    ['client-key.pem', 'key.pem'],
  ] as const)
    execFileSync('cp', [join(folder, from), join(folder, to)])
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port: found } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return found
}

beforeAll(async () => {
  if (impossible !== undefined) return
  port = await freePort()
  engine = await startDockerEngine({
    arguments: (folder) => {
      const own = join(folder, 'tls')
      makeCertificates(own)
      env = { DOCKER_HOST: `tcp://127.0.0.1:${port}`, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: own }
      return ['-H', `tcp://127.0.0.1:${port}`, '--tlsverify', `--tlscacert=${own}/ca.pem`, `--tlscert=${own}/daemon.pem`, `--tlskey=${own}/daemon-key.pem`]
    },
  })
})
afterAll(async () => {
  await engine?.[Symbol.asyncDispose]()
})

describe('an engine by TCP with TLS', () => {
  skipGroup(impossible ?? false)

  test('carries the channel of a cell, both ways and to its end', async () => {
    const platform = createPlatform({ drivers: [createDockerDriver({ address: engineAddress(env) })] })
    const sandbox = await Sandbox.create({ platform, driver: 'docker' })
    const sent = 'x'.repeat(300_000)
    expect((await sandbox.run(['cat'], { stdin: sent })).stdout).toBe(sent)
    await sandbox.close()
    await platform[Symbol.asyncDispose]()
    expect(await engine.client.call('GET', '/containers/json', { query: { all: '1' } })).toEqual([])
  })

  test('is not believed when somebody else vouches for it, and believes nobody without a certificate', async () => {
    const address = engineAddress(env)
    if (address.kind !== 'tcp' || !address.tls) throw new Error('no TLS')
    const stranger = { ...address, tls: { ...address.tls, ca: Buffer.from('') } }
    expect(await rejectionOf(createEngineClient(stranger).version())).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/certificate/) })
    expect(await rejectionOf(createEngineClient({ ...address, tls: undefined }).version())).toBeInstanceOf(Error)
  })
})
