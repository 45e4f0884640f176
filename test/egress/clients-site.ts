/** Servers of one company on one port: files, a repository of git, an index of Python, a registry of npm, an echo over WebSocket. They write down who came. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, normalize } from 'node:path'
import type { Duplex } from 'node:stream'
import { createSecureContext } from 'node:tls'
import type { TestAuthority } from './front-servers.js'

export interface Visit {
  readonly host: string
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
}

export interface Site extends AsyncDisposable {
  readonly port: number
  readonly visits: readonly Visit[]
  /** Names that TLS was begun for. */
  readonly greeted: readonly string[]
  /** Where its files are. */
  readonly folder: string
  /** From now on npm gets another file than was promised. */
  lie(): void
  /** How many connections were made, whatever they were for. */
  readonly connections: () => number
}

export async function openSite(authority: TestAuthority): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-site-'))
  makeFiles(folder)
  const visits: Visit[] = []
  const greeted: string[] = []
  const contexts = new Map<string, ReturnType<typeof createSecureContext>>()
  const contextFor = (name: string) => {
    const known = contexts.get(name) ?? createSecureContext(authority.pairFor(name))
    contexts.set(name, known)
    return known
  }
  const server = createServer({
    ...authority.pairFor('nobody.example.com'),
    SNICallback: (name, done) => {
      greeted.push(name)
      done(null, contextFor(name))
    },
  })
  const note = ({ headers, method = '', url = '' }: IncomingMessage): void => {
    visits.push({ host: headers.host ?? '', method, url, headers: { ...headers } })
  }
  server.on('request', (request, response) => {
    note(request)
    answer(folder, request, response)
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    note(request)
    echo(request, socket)
  })
  return listening(server, { visits, greeted, folder })
}

async function listening(server: Server, { visits, greeted, folder }: { visits: Visit[]; greeted: string[]; folder: string }): Promise<Site> {
  let connections = 0
  server.on('connection', () => (connections += 1))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    visits,
    greeted,
    folder,
    lie: () => writeFileSync(join(folder, 'lie'), ''),
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Files as they are; what npm asks for is told with the address that it was asked at. */
function answer(folder: string, request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = new URL(request.url ?? '/', 'https://x')
  if (pathname === '/redirect') {
    response.writeHead(302, { location: new URL(request.url ?? '/', 'https://x').searchParams.get('to') ?? '/' }).end()
    return
  }
  if (pathname === '/tiny') {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(npmDocument(folder, `https://${request.headers.host ?? ''}/tiny-1.0.0.tgz`)))
    return
  }
  const path = join(folder, normalize(pathname))
  const file = path.endsWith('/') ? join(path, 'index.html') : path
  if (!existsSync(file) || !statSync(file).isFile()) {
    response.writeHead(404).end('not here')
    return
  }
  if (file.endsWith('.tgz') && existsSync(join(folder, 'lie'))) {
    response.end(Buffer.concat([readFileSync(file), Buffer.of(7)]))
    return
  }
  if (file.endsWith('.html')) response.setHeader('content-type', 'text/html')
  response.end(readFileSync(file))
}

function npmDocument(folder: string, tarball: string) {
  const integrity = `sha512-${createHash('sha512')
    .update(readFileSync(join(folder, 'tiny-1.0.0.tgz')))
    .digest('base64')}`
  const version = { name: 'tiny', version: '1.0.0', dist: { tarball, integrity } }
  return { name: 'tiny', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }
}

/** One short frame of text at a time, unmasked on the way back (RFC 6455). */
function echo(request: IncomingMessage, socket: Duplex): void {
  const accept = createHash('sha1')
    .update(`${request.headers['sec-websocket-key'] ?? ''}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64')
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`)
  socket.on('error', () => undefined)
  socket.on('data', (frame: Buffer) => {
    const length = (frame[1] ?? 0) & 0x7f
    const mask = frame.subarray(2, 6)
    const text = frame.subarray(6, 6 + length).map((byte, index) => byte ^ (mask[index % 4] ?? 0))
    if (((frame[0] ?? 0) & 0xf) === 1) socket.write(Buffer.concat([Buffer.of(0x81, length), text]))
    else socket.end(Buffer.of(0x88, 0))
  })
}

const metadata = 'Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n'
const wheel = 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n'

function makeFiles(folder: string): void {
  writeFileSync(join(folder, 'hello.txt'), 'hello from outside\n')
  makeRepository(folder)
  makeWheel(folder)
  const npm = join(folder, 'package')
  mkdirSync(npm)
  writeFileSync(join(npm, 'package.json'), JSON.stringify({ name: 'tiny', version: '1.0.0', main: 'index.js' }))
  writeFileSync(join(npm, 'index.js'), "module.exports = 'tiny of npm'\n")
  execFileSync('tar', ['-czf', join(folder, 'tiny-1.0.0.tgz'), '-C', folder, 'package'])
}

function makeRepository(folder: string): void {
  const work = join(folder, 'work')
  const git = (...args: string[]): void => {
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', '-c', 'init.defaultBranch=main', ...args], { stdio: 'ignore' })
  }
  git('init', work)
  writeFileSync(join(work, 'README'), 'a repository\n')
  git('-C', work, 'add', 'README')
  git('-C', work, 'commit', '-m', 'first')
  git('clone', '--bare', work, join(folder, 'repository.git'))
  git('-C', join(folder, 'repository.git'), 'update-server-info')
}

function makeWheel(folder: string): void {
  const simple = join(folder, 'simple', 'tiny')
  mkdirSync(simple, { recursive: true })
  const program = `import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    for name, text in zip(sys.argv[2::2], sys.argv[3::2]): wheel.writestr(name, text)`
  const name = 'tiny-1.0-py3-none-any.whl'
  const info = 'tiny-1.0.dist-info'
  const record = ['tiny.py,,', `${info}/METADATA,,`, `${info}/WHEEL,,`, `${info}/RECORD,,`, ''].join('\n')
  const files = ['tiny.py', "value = 'tiny of pip'\n", `${info}/METADATA`, metadata, `${info}/WHEEL`, wheel, `${info}/RECORD`, record]
  execFileSync('/usr/bin/python3', ['-c', program, join(simple, name), ...files])
  const hash = createHash('sha256')
    .update(readFileSync(join(simple, name)))
    .digest('hex')
  writeFileSync(join(simple, 'index.html'), `<!DOCTYPE html><a href="${name}#sha256=${hash}">${name}</a>`)
}
