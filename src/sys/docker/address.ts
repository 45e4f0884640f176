/** Where a container engine listens, told as its own tools are told: by DOCKER_HOST, or at the usual places. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SandboxError } from '../../contract/errors.js'

export type EngineAddress =
  | { readonly kind: 'socket'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly tls: EngineTls | undefined }

/** Who it must be, and who we are. */
export interface EngineTls {
  readonly ca: Buffer
  readonly cert: Buffer
  readonly key: Buffer
}

type Environment = Readonly<Record<string, string | undefined>>

const usualPort = { plain: 2375, tls: 2376 } as const

/** Throws SandboxError('invalid') for a DOCKER_HOST that cannot be meant. */
export function engineAddress(env: Environment = process.env): EngineAddress {
  const given = env.DOCKER_HOST
  return given === undefined || given === '' ? { kind: 'socket', path: usualSocket(env) } : parseHost(given, env)
}

export function describeAddress(address: EngineAddress): string {
  if (address.kind === 'socket') return `unix://${address.path}`
  return `tcp://${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}${address.tls ? ' (TLS)' : ''}`
}

/** Docker's, then Podman's: of root, and of this user. The first where there is none, so that it is named. */
function usualSocket(env: Environment): string {
  const runtime = env.XDG_RUNTIME_DIR
  const own = runtime === undefined ? [] : ['docker.sock', 'podman/podman.sock'].map((name) => join(runtime, name))
  const places = ['/var/run/docker.sock', ...own, '/run/podman/podman.sock']
  return places.find((path) => existsSync(path)) ?? (places[0] as string)
}

function parseHost(given: string, env: Environment): EngineAddress {
  const socket = /^unix:\/\/(\/.+)$/.exec(given)?.[1]
  if (socket !== undefined) return { kind: 'socket', path: socket }
  // What is not http has no port of its own to leave out.
  const plain = given.replace(/^(tcp|https?):/, 'http:')
  if (!plain.startsWith('http://') || !URL.canParse(plain)) {
    throw new SandboxError('invalid', `DOCKER_HOST: '${given.slice(0, 200)}' is neither unix:///path nor tcp://host:port`, {
      hint: 'export DOCKER_HOST=unix:///var/run/docker.sock',
    })
  }
  const url = new URL(plain)
  const tls = given.startsWith('https:') || (env.DOCKER_TLS_VERIFY ?? '') !== '' ? readTls(env) : undefined
  const port = url.port === '' ? (tls ? usualPort.tls : usualPort.plain) : Number(url.port)
  return { kind: 'tcp', host: url.hostname.replace(/^\[|\]$/g, ''), port, tls }
}

function readTls(env: Environment): EngineTls {
  const folder = env.DOCKER_CERT_PATH ?? join(env.HOME ?? '/', '.docker')
  const read = (name: string): Buffer => {
    try {
      return readFileSync(join(folder, name))
    } catch (error) {
      throw new SandboxError('invalid', `DOCKER_CERT_PATH: ${(error as Error).message}`, { hint: `ls -l ${folder}`, cause: error })
    }
  }
  return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') }
}
