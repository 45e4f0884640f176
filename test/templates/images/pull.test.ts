import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { createPlatform, templateBuilder } from '../../../src/compose.js'
import type { BuildEvent } from '../../../src/contract/templates.js'
import { Sandbox } from '../../../src/index.js'
import { registryLogin } from '../../../src/sys/registry-login.js'
import { parseReference } from '../../../src/templates/images/reference.js'
import { skipGroup } from '../../unless.js'
import { whyNotBuilt } from '../reachable.js'
import { digest, image, tar } from './archives.js'
import { login, type Meddling, push, type Registry, startMeddler, startRegistry, unpackRegistry } from './registry.js'

const place = mkdtempSync(join(tmpdir(), 'gbx-pull-'))
const templateDir = join(place, 'store')
const why = (await whyNotBuilt(templateDir)) || (await unpackRegistry(join(place, 'registry')))
if (why) console.log(`no image is pulled by these tests: ${why}`)

const builder = templateBuilder({ templateDir })
const platform = createPlatform({ templateDir })
const timeout = 180_000
const registry = why ? undefined : await startRegistry(join(place, 'registry'))
const host = registry?.host ?? ''
const opened: Registry[] = []

afterEach(async () => {
  for (const each of opened.splice(0)) await each[Symbol.asyncDispose]()
})
afterAll(async () => {
  await registry?.[Symbol.asyncDispose]()
  await platform[Symbol.asyncDispose]()
  rmSync(place, { recursive: true, force: true })
})

async function meddler(meddle: Meddling): Promise<string> {
  const server = await startMeddler(host, meddle)
  opened.push(server)
  return server.host
}

function busybox(): Buffer {
  return readFileSync(join(templateDir, 'objects', builder.inspect('busybox').id.slice(7), 'root/usr/bin/busybox'))
}

const made = why
  ? image([])
  : image(
      [
        tar({ name: 'bin/busybox', content: busybox(), mode: 0o755 }, ...['sh', 'cat'].map((name) => ({ name: `bin/${name}`, type: '2', target: 'busybox' }))),
        tar({ name: 'data/greeting', content: 'pulled\n' }),
      ],
      { Env: ['PATH=/bin'], WorkingDir: '/data' },
    )
const manifest = digest(made.manifest)
const layer = [...made.blobs.keys()].at(-1) ?? ''
if (!why) await push(host, { name: 'team/app', tag: '1.0', made })

function blobFile(name: string): string {
  const hex = name.slice(7)
  return join(registry?.storage ?? '', 'docker/registry/v2/blobs/sha256', hex.slice(0, 2), hex, 'data')
}

/** Nothing is left of a pull that did not come to its end: no name, no draft, no piece of a blob. */
function expectNothing(name: string): void {
  const pieces = readdirSync(join(templateDir, 'blobs')).filter((each) => !/^[0-9a-f]{64}$/.test(each))
  expect([readdirSync(join(templateDir, 'drafts')), existsSync(join(templateDir, 'names', name)), pieces]).toEqual([[], false, []])
}

describe('an image of a registry', { timeout }, () => {
  skipGroup(why)

  test('is pulled by its tag, and runs; the receipt has the digest that the registry knows it by', async () => {
    const events: BuildEvent[] = []
    const result = await builder.pull(`docker://${host}/team/app:1.0`, { onEvent: (event) => void events.push(event) })
    expect(result).toMatchObject({ name: 'app-1.0', recipe: 'pull', image: { digest: manifest, source: `docker://${host}/team/app@${manifest}` } })
    await using sandbox = await Sandbox.create({ template: 'app-1.0', platform })
    expect([(await sandbox.run('cat greeting')).stdout, (await sandbox.receipt()).imageDigest]).toEqual(['pulled\n', manifest])
    const fractions = events.flatMap((event) => (event.type === 'progress' && event.phase === 'downloading' ? [event.fraction] : []))
    expect([fractions.length > 1, fractions.at(-1)]).toEqual([true, 1])
  })

  test('is pulled by its digest, under the name that is asked for; layers that are here are not fetched again', async () => {
    const asked: string[] = []
    const between = await meddler((request, _answer, pass) => {
      asked.push(request.url ?? '')
      pass()
    })
    const result = await builder.pull(`${between}/team/app@${manifest}`, { name: 'pinned' })
    expect([result.name, result.image?.digest]).toEqual(['pinned', manifest])
    expect(asked.filter((url) => made.layers.length > 0 && url.includes('/blobs/') && !url.includes(digest(made.config)))).toEqual([])
  })

  test('that a Dockerfile is based on takes the place of no template, whatever it is called', async () => {
    await push(host, { name: 'stranger/busybox', tag: 'latest', made })
    const before = builder.inspect('busybox').id
    const folder = mkdtempSync(join(place, 'based-'))
    writeFileSync(join(folder, 'Dockerfile'), `FROM ${host}/stranger/busybox\nENV A=1\n`)
    const result = await builder.buildFolder(folder, { name: 'based' })
    expect(result.summary).toContain(manifest)
    expect(builder.inspect('busybox').id).toBe(before)
  })

  test('that is an index is that of this machine', async () => {
    const here = process.arch === 'x64' ? 'amd64' : process.arch
    const type = 'application/vnd.oci.image.manifest.v1+json'
    const entry = (architecture: string) => ({ mediaType: type, digest: manifest, size: made.manifest.length, platform: { os: 'linux', architecture } })
    const put = async (tag: string, manifests: unknown[]) => {
      const body = JSON.stringify({ schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', manifests })
      const headers = { 'content-type': 'application/vnd.oci.image.index.v1+json' }
      expect((await fetch(`http://${host}/v2/team/app/manifests/${tag}`, { method: 'PUT', body, headers })).status).toBe(201)
    }
    await put('many', [entry('s390x'), entry(here)])
    await put('other', [entry('s390x'), entry('mips')])
    expect((await builder.pull(`${host}/team/app:many`)).image?.digest).toBe(manifest)
    await expect(builder.pull(`${host}/team/app:other`)).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('it is for linux/s390x, linux/mips'),
    })
    expectNothing('app-other')
  })

  test('behind a login is handed out to who has it, by option or by what docker login wrote, and to nobody else', async () => {
    await using closed = await startRegistry(join(place, 'registry'), { hasLogin: true })
    const authorization = `Basic ${Buffer.from(`${login.user}:${login.secret}`).toString('base64')}`
    await push(closed.host, { name: 'secret', tag: 'latest', made, headers: { authorization } })
    const reference = `${closed.host}/secret`
    await expect(builder.pull(reference)).rejects.toMatchObject({ code: 'denied', message: `${closed.host} does not hand out secret without a login` })
    await expect(builder.pull(reference, { login: { user: 'reader', secret: 'wrong' } })).rejects.toMatchObject({ code: 'denied' })
    expectNothing('secret')
    expect((await builder.pull(reference, { login })).image?.digest).toBe(manifest)
    mkdirSync(join(place, 'docker'))
    writeFileSync(join(place, 'docker/config.json'), JSON.stringify({ auths: { [closed.host]: { auth: authorization.slice(6) } } }))
    expect(registryLogin(closed.host, { DOCKER_CONFIG: join(place, 'docker') })).toEqual(login)
    expect(registryLogin('elsewhere.example', { DOCKER_CONFIG: join(place, 'docker') })).toBeUndefined()
  })

  test('that asks for a token gets it by the way it names, and our name goes to nobody else', async () => {
    const heard: [string, string | undefined][] = []
    let elsewhere = ''
    const between = await meddler((request, answer, pass) => {
      heard.push([request.url ?? '', request.headers.authorization])
      if (request.url?.startsWith('/token')) return answer.end('{"token":"t0ken"}')
      if (request.headers.authorization !== 'Bearer t0ken')
        return answer
          .writeHead(401, { 'www-authenticate': `Bearer realm="http://${request.headers.host}/token",service="here",scope="repository:team/app:pull"` })
          .end()
      if (request.url?.includes('/blobs/')) return answer.writeHead(307, { location: `http://${elsewhere}${request.url}` }).end()
      pass()
    })
    elsewhere = await meddler((request, _answer, pass) => {
      heard.push([`elsewhere ${request.url ?? ''}`, request.headers.authorization])
      pass()
    })
    await builder.pull(`${between}/team/app:1.0`, { login, name: 'by-token' })
    expect(heard.find(([url]) => url.startsWith('/token'))).toEqual([
      '/token?service=here&scope=repository%3Ateam%2Fapp%3Apull',
      expect.stringMatching(/^Basic /),
    ])
    expect(heard.filter(([url]) => url.startsWith('elsewhere')).map(([, name]) => name)).toEqual([undefined])
  })
})

describe('a pull that fails says why, and leaves nothing', { timeout }, () => {
  skipGroup(why)

  /** Without what was kept of layers. */
  function forget(): void {
    for (const name of readdirSync(join(templateDir, 'blobs'))) rmSync(join(templateDir, 'blobs', name))
  }

  async function failure(reference: string, options: { readonly idleMs?: number; readonly signal?: AbortSignal } = {}): Promise<unknown> {
    forget()
    const error = await builder.pull(reference, { name: 'bad', ...options }).then(
      () => 'it did not fail',
      (found: unknown) => found,
    )
    expectNothing('bad')
    return error
  }

  test('a tag, a digest or an image that there is not', async () => {
    const wrong = digest('something else')
    expect(await failure(`${host}/team/app:2.0`)).toMatchObject({ code: 'not-found', message: expect.stringContaining(`${host} has no tag 2.0 of team/app`) })
    expect(await failure(`${host}/team/app@${wrong}`)).toMatchObject({ code: 'not-found', message: expect.stringContaining(`has no manifest ${wrong}`) })
    expect(await failure(`${host}/team/nothing`)).toMatchObject({ code: 'not-found' })
  })

  test('a manifest that is not what its digest says', async () => {
    const between = await meddler((_request, _answer, pass) => pass((body) => Buffer.from(body.toString().replace('"schemaVersion":2', '"schemaVersion": 2'))))
    expect(await failure(`${between}/team/app@${manifest}`)).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('the manifest is not what its digest says'),
    })
  })

  test('a layer that is cut short, on the way or in the registry; one with other bytes; one with more', async () => {
    const onLayer =
      (change: (body: Buffer) => Buffer): Meddling =>
      (request, _answer, pass) =>
        pass(request.url?.includes(layer) ? change : undefined)
    const short = await meddler(onLayer((body) => body.subarray(0, body.length - 10)))
    const size = made.blobs.get(layer)?.length ?? 0
    expect(await failure(`${short}/team/app:1.0`)).toMatchObject({
      code: 'conflict',
      message: `layer ${layer} is cut short: ${size - 10} bytes came, and its manifest says ${size}`,
    })
    const other = await meddler(onLayer((body) => Buffer.from(body.map((byte, index) => (index === 20 ? byte ^ 1 : byte)))))
    expect(await failure(`${other}/team/app:1.0`)).toMatchObject({ code: 'conflict', message: expect.stringContaining('a layer is not what its digest says') })
    const more = await meddler(onLayer((body) => Buffer.concat([body, Buffer.alloc(1000)])))
    expect(await failure(`${more}/team/app:1.0`)).toMatchObject({ code: 'conflict', message: expect.stringContaining('has more than') })
    const cut = await meddler((request, answer, pass) => {
      if (!request.url?.includes(layer)) return pass()
      answer.writeHead(200, { 'content-length': size })
      answer.write(Buffer.alloc(10), () => answer.destroy())
    })
    expect(await failure(`${cut}/team/app:1.0`)).toMatchObject({
      code: 'unavailable',
      message: `${cut} ended the connection before all of its answer had come`,
      hint: `curl -v http://${cut}/v2/`,
    })
    const whole = readFileSync(blobFile(layer))
    truncateSync(blobFile(layer), 30)
    expect(await failure(`${host}/team/app:1.0`)).toMatchObject({ code: expect.stringMatching(/conflict|unavailable/) })
    rmSync(blobFile(layer))
    expect(await failure(`${host}/team/app:1.0`)).toMatchObject({ code: 'not-found', message: expect.stringContaining(`has no layer ${layer}`) })
    writeFileSync(blobFile(layer), whole)
    expect((await builder.pull(`${host}/team/app:1.0`, { name: 'good-again' })).image?.digest).toBe(manifest)
  })

  test('a registry that says nothing, at first or in the middle of a layer; one that goes in circles; one that is not there', async () => {
    const silent = await meddler(() => undefined)
    expect(await failure(`${silent}/team/app:1.0`, { idleMs: 300 })).toMatchObject({ code: 'unavailable', message: `${silent} said nothing for 300 ms` })
    const stalled = await meddler((request, answer, pass) => {
      if (!request.url?.includes(layer)) return pass()
      answer.writeHead(200, { 'content-length': 100_000 })
      answer.write(Buffer.alloc(10))
    })
    expect(await failure(`${stalled}/team/app:1.0`, { idleMs: 300 })).toMatchObject({ code: 'unavailable', message: expect.stringContaining('said nothing') })
    const circles = await meddler((request, answer) => answer.writeHead(302, { location: request.url ?? '' }).end())
    expect(await failure(`${circles}/team/app:1.0`)).toMatchObject({ code: 'unavailable', message: expect.stringContaining('without end') })
    const broken = await meddler((_request, answer) => answer.writeHead(500).end('<html>'))
    expect(await failure(`${broken}/team/app:1.0`)).toMatchObject({ code: 'unavailable', message: expect.stringContaining('answered 500') })
    const gone = await meddler(() => undefined)
    await opened.pop()?.[Symbol.asyncDispose]()
    expect(await failure(`${gone}/team/app:1.0`)).toMatchObject({
      code: 'unavailable',
      message: `${gone} cannot be reached: nobody listens there`,
      hint: `curl -v http://${gone}/v2/`,
    })
  })

  test('one that is called off', async () => {
    const silent = await meddler(() => undefined)
    expect(await failure(`${silent}/team/app:1.0`, { signal: AbortSignal.timeout(200) })).toMatchObject({ name: 'TimeoutError' })
  })

  test('a kept layer that was damaged is fetched again', async () => {
    await builder.pull(`${host}/team/app:1.0`, { name: 'mended' })
    const kept = join(templateDir, 'blobs', layer.slice(7))
    writeFileSync(kept, Buffer.alloc(readFileSync(kept).length))
    expect((await builder.pull(`${host}/team/app:1.0`, { name: 'mended', again: true })).image?.digest).toBe(manifest)
  })
})

describe('names of images', () => {
  test.each([
    ['docker://debian', { registry: 'registry-1.docker.io', repository: 'library/debian', version: 'latest', isDigest: false }],
    ['debian:12', { registry: 'registry-1.docker.io', repository: 'library/debian', version: '12', isDigest: false }],
    ['docker.io/team/app:1', { registry: 'registry-1.docker.io', repository: 'team/app', version: '1', isDigest: false }],
    ['localhost:5000/a/b:c', { registry: 'localhost:5000', repository: 'a/b', version: 'c', isDigest: false }],
    [`ghcr.io/a/b:c@sha256:${'0'.repeat(64)}`, { registry: 'ghcr.io', repository: 'a/b', version: `sha256:${'0'.repeat(64)}`, isDigest: true }],
  ])('%s is understood', (text, expected) => {
    expect(parseReference(text)).toEqual(expected)
  })

  test.each([
    '',
    'UPPER',
    'a/../b',
    'host.name/',
    'a@sha256:12',
    'a:b:c/d e',
    'http://x/y',
    'user:pw@host.example/x',
    'a\u0000b',
    'localhost:0/a',
    'localhost:65536/a',
  ])('%j is none', (text) => {
    expect(() => parseReference(text)).toThrow(expect.objectContaining({ code: 'invalid' }))
  })
})
