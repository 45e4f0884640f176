/** Debian's docker-registry on loopback, with files of its own; and what stands between it and us when something goes wrong. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { unpackDebian } from '../../debian-packages.js'
import { digest, type MadeImage } from './archives.js'

export const login = { user: 'reader', secret: 'open sesame' }
const hashed = '$2b$04$Azh3jdwJ3IlSOI/34fcsG.lcVIirH8bcvLgVc0PXYFcM2sF/KjqWe'

export interface Registry extends AsyncDisposable {
  /** `127.0.0.1:PORT`. */
  readonly host: string
  /** Where its files are. */
  readonly storage: string
}

/** Once for each folder. */
export async function unpackRegistry(folder: string): Promise<string | false> {
  return unpackDebian({ packages: ['docker-registry'], without: ['adduser', 'lsb-base', 'libc6'] }, folder)
}

export async function startRegistry(folder: string, { hasLogin = false } = {}): Promise<Registry> {
  const own = join(folder, hasLogin ? 'closed' : 'open')
  const storage = join(own, 'storage')
  mkdirSync(storage, { recursive: true })
  writeFileSync(join(own, 'htpasswd'), `${login.user}:${hashed}\n`)
  const auth = hasLogin ? `auth:\n  htpasswd:\n    realm: here\n    path: ${join(own, 'htpasswd')}\n` : ''
  const settings = `version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: ${storage}\n  delete:\n    enabled: true\nhttp:\n  addr: 127.0.0.1:0\n${auth}`
  writeFileSync(join(own, 'config.yml'), settings)
  const child = spawn(join(folder, 'root/usr/bin/docker-registry'), ['serve', join(own, 'config.yml')], { stdio: ['ignore', 'pipe', 'pipe'], env: {} })
  const ended = once(child, 'exit')
  const host = await new Promise<string>((resolve, reject) => {
    let said = ''
    const listen = (bytes: Buffer): void => {
      said += bytes.toString()
      const found = /listening on (127\.0\.0\.1:\d+)/.exec(said)?.[1]
      if (found !== undefined) resolve(found)
    }
    child.stderr.on('data', listen)
    child.stdout.on('data', listen)
    ended.then(() => reject(new Error(`the registry ended: ${said}`)), reject)
  })
  return {
    host,
    storage,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

export async function push(host: string, { name, tag, made, headers = {} }: { name: string; tag: string; made: MadeImage; headers?: Record<string, string> }) {
  for (const [blob, content] of made.blobs) {
    const begun = await fetch(`http://${host}/v2/${name}/blobs/uploads/`, { method: 'POST', headers })
    const url = new URL(begun.headers.get('location') ?? '', `http://${host}`)
    url.searchParams.set('digest', blob)
    const sent = await fetch(url, { method: 'PUT', body: new Uint8Array(content), headers: { ...headers, 'content-type': 'application/octet-stream' } })
    if (sent.status !== 201) throw new Error(`blob ${blob}: ${sent.status} ${await sent.text()}`)
  }
  const type = 'application/vnd.oci.image.manifest.v1+json'
  const sent = await fetch(`http://${host}/v2/${name}/manifests/${tag}`, {
    method: 'PUT',
    body: new Uint8Array(made.manifest),
    headers: { ...headers, 'content-type': type },
  })
  if (sent.status !== 201) throw new Error(`manifest ${tag}: ${sent.status} ${await sent.text()}`)
  return digest(made.manifest)
}

export type Meddling = (asked: IncomingMessage, answer: ServerResponse, pass: (change?: (body: Buffer) => Buffer) => void) => void

/** A server between us and a registry that hands on what it is asked, unless it meddles. */
export async function startMeddler(host: string, meddle: Meddling): Promise<Registry> {
  const server = createServer((asked, answer) => {
    meddle(asked, answer, (change = (body) => body) => {
      const onward = request(`http://${host}${asked.url ?? ''}`, { headers: { accept: asked.headers.accept ?? '*/*' } }, (reply) => {
        const pieces: Buffer[] = []
        reply.on('data', (piece: Buffer) => void pieces.push(piece))
        reply.on('end', () => {
          const body = change(Buffer.concat(pieces))
          answer.writeHead(reply.statusCode ?? 500, { 'content-type': reply.headers['content-type'] ?? '', 'content-length': body.length })
          answer.end(body)
        })
      })
      onward.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    storage: '',
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
