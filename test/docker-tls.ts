/** An engine that is reached by TCP on the loopback, and shows and wants certificates. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type DockerEngine, type DockerEngineOptions, noDockerEngine, startDockerEngine } from './docker-engine.js'

export interface TlsEngine {
  readonly engine: DockerEngine
  /** By which its clients find it. */
  readonly env: Readonly<Record<string, string>>
}

/** Why there can be none here; undefined when there can. */
export function noTlsEngine(): string | undefined {
  return noDockerEngine() ?? (existsSync('/usr/bin/openssl') ? undefined : 'openssl, which makes the certificates, is not installed')
}

export async function startTlsEngine(options: Pick<DockerEngineOptions, 'without'> = {}): Promise<TlsEngine> {
  const port = await freePort()
  let env: Record<string, string> = {}
  const engine = await startDockerEngine({
    ...options,
    arguments: (folder) => {
      const own = join(folder, 'tls')
      makeCertificates(own)
      env = { DOCKER_HOST: `tcp://127.0.0.1:${port}`, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: own }
      return ['-H', `tcp://127.0.0.1:${port}`, '--tlsverify', `--tlscacert=${own}/ca.pem`, `--tlscert=${own}/daemon.pem`, `--tlskey=${own}/daemon-key.pem`]
    },
  })
  return { engine, env }
}

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

/** A certificate and its key by which nobody knows us: of another authority. */
export function strangersPair(folder: string): { readonly cert: Buffer; readonly key: Buffer } {
  const own = join(folder, 'stranger')
  makeCertificates(own)
  return { cert: readFileSync(join(own, 'cert.pem')), key: readFileSync(join(own, 'key.pem')) }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port: found } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return found
}
