import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { createPlatform, templateBuilder } from '../../../src/compose.js'
import type { BuildEvent, BuildResult } from '../../../src/contract/templates.js'
import { Sandbox } from '../../../src/index.js'
import type { FolderOptions } from '../../../src/templates/images/build-folder.js'
import { skipGroup } from '../../unless.js'
import { whyNotBuilt } from '../reachable.js'
import { image, layoutArchive, tar } from './archives.js'

const place = mkdtempSync(join(tmpdir(), 'gbx-folder-'))
const templateDir = join(place, 'store')
const builder = templateBuilder({ templateDir })
const platform = createPlatform({ templateDir })
const timeout = 180_000
const why = (await whyNotBuilt(templateDir)) || (await whyNoRoot())
if (why) console.log(`no Dockerfile is built by these tests: ${why}`)
if (!why) await builder.import(baseArchive(), { name: 'small' })

afterAll(async () => {
  await platform[Symbol.asyncDispose]()
  rmSync(place, { recursive: true, force: true })
})

async function whyNoRoot(): Promise<string | false> {
  const probe = (await platform.probe()).find(({ driver }) => driver === 'bwrap')
  const feature = probe?.features['root-overlay']
  return feature === undefined ? 'there is no bwrap' : feature.available ? false : feature.why
}

function baseArchive(): string {
  const busybox = readFileSync(join(templateDir, 'objects', builder.inspect('busybox').id.slice(7), 'root/usr/bin/busybox'))
  const names = [
    'sh',
    'cat',
    'ls',
    'rm',
    'mkdir',
    'echo',
    'date',
    'cp',
    'chmod',
    'chown',
    'adduser',
    'id',
    'env',
    'mv',
    'ln',
    'sleep',
    'test',
    'touch',
    'nc',
    'grep',
    'printf',
    'stat',
  ]
  const layer = tar({ name: 'bin/busybox', content: busybox, mode: 0o755 }, ...names.map((name) => ({ name: `bin/${name}`, type: '2', target: 'busybox' })), {
    name: 'old/file',
    content: 'old\n',
  })
  const path = join(place, 'small.tar')
  writeFileSync(path, layoutArchive(image([layer], { Env: ['PATH=/bin', 'BASE=yes'] })))
  return path
}

let count = 0

/** A folder with these files. */
function folder(files: Readonly<Record<string, string | Buffer>>): string {
  count += 1
  const path = join(place, `context${count}`)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), text)
  }
  return path
}

async function build(files: Readonly<Record<string, string | Buffer>>, options: FolderOptions = {}): Promise<BuildResult & { told: readonly BuildEvent[] }> {
  const told: BuildEvent[] = []
  const result = await builder.buildFolder(folder(files), { onEvent: (event) => void told.push(event), name: 'made', ...options })
  return { ...result, told }
}

async function inMade(command: string | readonly [string, ...string[]], name = 'made'): Promise<string> {
  await using sandbox = await Sandbox.create({ template: name, platform })
  const result = await sandbox.run(typeof command === 'string' ? command : [...command])
  return `${result.stdout}${result.stderr}`
}

const done = ({ told }: { told: readonly BuildEvent[] }): string[] =>
  told.flatMap((event) => (event.type === 'phase' && (event.phase === 'running' || event.phase === 'copying') ? [event.detail ?? ''] : []))

describe('a build by a Dockerfile', { timeout }, () => {
  skipGroup(why)

  test('runs, copies and sets what it says, as root over a base that stays as it was', async () => {
    const result = await build({
      Dockerfile: [
        'ARG BASE=small',
        'FROM $BASE',
        'ARG VERSION=1',
        'ENV APP_HOME=/app GREETING="hello there"',
        'WORKDIR $APP_HOME',
        'COPY run.sh data/ ./',
        'COPY --chmod=755 run.sh /usr/local/bin/tool',
        'RUN echo app:x:1234:1234::/home/app:/bin/sh >> /etc/passwd && chown -R app /app && echo "$VERSION $BASE" > version && rm /old/file',
        'LABEL org.example.x="1 2" y=z',
        'USER app',
        'EXPOSE 80',
        'ENTRYPOINT ["/app/run.sh"]',
        'CMD ["now"]',
      ].join('\n'),
      'run.sh': '#!/bin/sh\necho "$GREETING: $(cat deep/a)"\n',
      'data/deep/a': 'content',
      'data/.hidden': 'h',
    })
    expect(result).toMatchObject({ recipe: 'Dockerfile', wasThere: false, env: { BASE: 'yes', APP_HOME: '/app', GREETING: 'hello there' } })
    expect(result.image).toMatchObject({ user: 'app', workdir: '/app', entrypoint: ['/app/run.sh'], cmd: ['now'], labels: { 'org.example.x': '1 2', y: 'z' } })
    expect(await inMade('sh ./run.sh; cat version; ls -A /app /old; cat /etc/passwd')).toMatch(
      /^hello there: content\n1 yes\n\/app:\n\.hidden\ndeep\nrun\.sh\nversion\n\n\/old:\nroot:[\s\S]*app:x:1234:/,
    )
    expect(await inMade(['/usr/local/bin/tool'])).toBe('hello there: content\n')
    expect(await inMade('cat /old/file', 'small')).toBe('old\n')
    expect(result.told).toContainEqual({
      type: 'note',
      text: 'Dockerfile:11: EXPOSE 80 does nothing here: a port is opened with the sandbox: glovebox run --port',
    })
    expect(await builder.verify('made')).toEqual([])
  })

  test('does again only what is behind the first difference, and nothing at all when there is none', async () => {
    const files = { Dockerfile: 'FROM small\nRUN cat /proc/sys/kernel/random/uuid > /one\nCOPY a /a\nRUN cat /proc/sys/kernel/random/uuid > /two\n', a: '1' }
    const first = await build(files)
    const one = await inMade('cat /one /two')
    const same = await build(files)
    expect([same.wasThere, same.id, done(same)]).toEqual([true, first.id, []])
    const changed = await build({ ...files, a: '2' })
    expect(done(changed)).toEqual([
      '[1/3] RUN cat /proc/sys/kernel/random/uuid > /one (known)',
      '[2/3] COPY a /a',
      '[3/3] RUN cat /proc/sys/kernel/random/uuid > /two',
    ])
    const two = await inMade('cat /one /two')
    expect([two.split('\n')[0], two.split('\n')[1] === one.split('\n')[1]]).toEqual([one.split('\n')[0], false])
    const again = await build(files, { isFresh: true })
    expect(done(again).some((step) => step.endsWith('(known)'))).toBe(false)
  })

  test('that fails says which line, and the last that its program said; nothing is kept but what was done before', async () => {
    const before = readdirSync(join(templateDir, 'names'))
    const failing = { Dockerfile: 'FROM small\n\nRUN echo fine\nRUN echo it broke >&2; \\\n  exit 7\nRUN echo never' }
    await expect(build(failing, { name: 'failing' })).rejects.toMatchObject({
      code: 'invalid',
      message: 'Dockerfile:4: RUN echo it broke >&2; exit 7: exit code 7: it broke',
    })
    await expect(build({ 'other.docker': 'FROM small\nRUN exit 7' }, { name: 'failing', file: 'other.docker' })).rejects.toMatchObject({
      message: 'other.docker:2: RUN exit 7: exit code 7',
    })
    await expect(build({ Dockerfile: 'FROM small\nRUN ["nothing-there"]' }, { name: 'failing' })).rejects.toMatchObject({
      message: expect.stringMatching(/^Dockerfile:2: RUN/),
    })
    await expect(build({ Dockerfile: 'FROM small\nCOPY nowhere /x' }, { name: 'failing' })).rejects.toMatchObject({
      message: expect.stringContaining("Dockerfile:2: there is no 'nowhere' in "),
    })
    await expect(build({ Dockerfile: 'FROM 127.0.0.1:9/nothing' }, { name: 'failing' })).rejects.toMatchObject({
      message: expect.stringMatching(/^Dockerfile:1: FROM .*cannot be reached/),
    })
    await expect(build({ Dockerfile: 'FROM small\nADD https://example.org/x /x' }, { name: 'failing' })).rejects.toMatchObject({
      message: expect.stringContaining('is elsewhere'),
    })
    expect([readdirSync(join(templateDir, 'names')), readdirSync(join(templateDir, 'drafts'))]).toEqual([before, []])
  })

  test('has stages: what a later one takes of an earlier is all that is left of that', async () => {
    const result = await build({
      Dockerfile: [
        'FROM small AS build',
        'RUN mkdir -p /out/deep && echo built > /out/deep/x && echo tool > /out/tool && chmod 755 /out/tool && ln -s deep/x /out/link',
        'FROM small AS unused',
        'RUN exit 1',
        'FROM build AS more',
        'RUN echo more > /out/more',
        'FROM scratch',
        'COPY --from=more /out/ /app/',
        'COPY --from=build /out/tool /bin/other',
        'COPY --from=small /bin/busybox /bin/cat',
      ].join('\n'),
    })
    expect(result.image?.leftOutCount).toBe(0)
    expect(await inMade(['/bin/cat', '/app/link', '/app/more', '/bin/other'])).toBe('built\nmore\ntool\n')
    expect(builder.inspect('made').entries).toBeLessThan(40)
  })

  test('unpacks archives that are added, keeps out what is to be ignored, and copies no link that leads out', async () => {
    const files = {
      Dockerfile: 'FROM small\nADD x.tar.gz /x/\nCOPY x.tar.gz /plain\nCOPY . /all/\nCOPY <<EOF /text\n$BASE\nEOF\n',
      'x.tar.gz': gzipSync(tar({ name: 'in/side', content: 'unpacked\n' })),
      '.dockerignore': '*.log\nsecret',
      'a.log': 'x',
      'secret/key': 'x',
      'kept/b': 'b',
    }
    await build(files)
    expect(await inMade('cat /x/in/side /text; ls -A /all; ls /plain')).toBe('unpacked\nyes\n.dockerignore\nDockerfile\nkept\nx.tar.gz\n/plain\n')
    const context = folder({ Dockerfile: 'FROM small\nCOPY out /x\n' })
    symlinkSync('/etc/passwd', join(context, 'out'))
    await expect(builder.buildFolder(context, { name: 'made' })).rejects.toMatchObject({ message: expect.stringContaining("Dockerfile:2: 'out' leads out of") })
    const around = folder({ Dockerfile: 'FROM small\nCOPY plain /x\n', '.dockerignore': 'secret', 'secret/key': 'x' })
    symlinkSync('secret/key', join(around, 'plain'))
    await expect(builder.buildFolder(around, { name: 'made' })).rejects.toMatchObject({
      message: expect.stringContaining("Dockerfile:2: there is no 'plain' in"),
    })
    const linked = folder({ Dockerfile: 'FROM small\nCOPY inner /x\n', 'inner/a': 'a' })
    symlinkSync('/etc/shadow', join(linked, 'inner/link'))
    await builder.buildFolder(linked, { name: 'made' })
    expect(await inMade('cat /x/link')).toContain('No such file')
  })

  test('reaches nothing, unless it is allowed to; sees nothing of the machine; and cannot hang for ever', async () => {
    const server = createServer((_request, answer) => answer.end('reached\n'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const asked = `GET http://127.0.0.1:${port}/ HTTP/1.1\\r\\nHost: 127.0.0.1:${port}\\r\\nConnection: close\\r\\n\\r\\n`
    const fetching = { Dockerfile: `FROM small\nRUN (printf '${asked}'; sleep 2) | nc -w 5 127.0.0.1 3128 > /got; cat /got; grep -q reached /got` }
    await expect(build(fetching)).rejects.toMatchObject({ message: expect.stringContaining('Dockerfile:2:') })
    const network = { allow: [`127.0.0.1:${port}`] }
    await expect(build(fetching, { network })).rejects.toMatchObject({ message: expect.stringContaining('Dockerfile:2:') })
    const operated = templateBuilder({ templateDir, policy: { ceiling: { network: { private: ['127.0.0.0/8'] } } } })
    await operated.buildFolder(folder(fetching), { name: 'made', network })
    expect(await inMade('cat /got')).toMatch(/^HTTP\/1\.[01] 200 [\s\S]*reached\n$/)
    server.close()
    const strict = templateBuilder({ templateDir, policy: { ceiling: { users: ['user'] } } })
    await expect(strict.buildFolder(folder(fetching), { name: 'made', isFresh: true })).rejects.toMatchObject({
      message: expect.stringContaining("'root' is not among what policy"),
    })
    await expect(build({ Dockerfile: 'FROM small\nRUN sleep 100' }, { limits: { time: '1s' } })).rejects.toMatchObject({
      message: expect.stringMatching(/^Dockerfile:2: RUN sleep 100: timed-out/),
    })
    const signal = AbortSignal.timeout(1500)
    await expect(build({ Dockerfile: 'FROM small\nRUN sleep 100' }, { signal })).rejects.toMatchObject({ name: 'TimeoutError' })
    await build({ Dockerfile: `FROM small\nRUN test ! -e ${place} && test ! -e /etc/shadow && id -u > /who` })
    expect(await inMade('cat /who')).toBe('0\n')
  })

  test('takes arguments, and a stage that is named', async () => {
    const files = { Dockerfile: 'FROM small AS one\nARG X=default\nRUN echo $X > /x\nFROM one\nRUN exit 1\n' }
    await build(files, { target: 'one', args: { X: 'given' } })
    expect(await inMade('cat /x')).toBe('given\n')
    await expect(build(files, { target: 'nowhere' })).rejects.toMatchObject({ code: 'invalid', message: "Dockerfile:1: there is no stage 'nowhere'" })
  })
})
