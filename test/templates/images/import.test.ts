import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { createPlatform, templateBuilder } from '../../../src/compose.js'
import { Sandbox } from '../../../src/index.js'
import { skipGroup } from '../../unless.js'
import { whyNotBuilt } from '../reachable.js'
import { digest, image, layoutArchive, savedArchive, tar } from './archives.js'

const place = mkdtempSync(join(tmpdir(), 'gbx-import-'))
const templateDir = join(place, 'store')
const why = await whyNotBuilt(templateDir)
if (why) console.log(`no image is imported by these tests: ${why}`)

const builder = templateBuilder({ templateDir })
const platform = createPlatform({ templateDir })
const timeout = 180_000

afterAll(async () => {
  await platform[Symbol.asyncDispose]()
  rmSync(place, { recursive: true, force: true })
})

/** A whole root, as images have it: programs in a /bin of its own, files at every place that a cell has something of its own near. */
function layers(): Buffer[] {
  const busybox = readFileSync(join(templateDir, 'objects', builder.inspect('busybox').id.slice(7), 'root/usr/bin/busybox'))
  return [
    tar(
      { name: 'bin/busybox', content: busybox, mode: 0o755 },
      ...['sh', 'cat', 'ls', 'id', 'env', 'pwd', 'touch'].map((name) => ({ name: `bin/${name}`, type: '2', target: '/bin/busybox' })),
      { name: 'sbin', type: '2', target: 'bin' },
      { name: 'etc/passwd', content: 'root:x:0:0:root:/root:/bin/sh\napp:x:1001:1001::/home/app:/bin/sh\n' },
      { name: 'var/lib/app/state', content: 'state\n' },
      { name: 'home/app/notes', content: 'notes\n' },
      { name: 'app/gone', content: 'gone\n' },
    ),
    tar(
      { name: 'app/.wh.gone' },
      { name: 'app/hello.sh', content: '#!/bin/sh\necho "hello from $PWD, $GREETING"\n', mode: 0o755 },
      { name: 'entry.sh', content: '#!/bin/sh\necho entered\n', mode: 0o755 },
      { name: 'root/.profile', content: 'x' },
      { name: 'su', content: 'x', mode: 0o4755 },
      { name: 'leak', type: '2', target: '/etc/shadow' },
    ),
  ]
}

const config = {
  Env: ['PATH=/bin', 'GREETING=welcome', 'HOME=/home/app'],
  User: 'app',
  WorkingDir: '/app',
  Entrypoint: ['/app/hello.sh'],
  Cmd: ['x'],
  Labels: { one: '1' },
}

function write(name: string, content: Buffer): string {
  const path = join(place, name)
  writeFileSync(path, content)
  return path
}

describe('an imported image', { timeout }, () => {
  skipGroup(why)

  test('is a root that a sandbox has: all its folders, its environment and working folder, nothing of the machine, and a receipt with its digest', async () => {
    const made = image(layers(), config)
    const result = await builder.import(write('whole.tar', layoutArchive(made)))
    expect(result).toMatchObject({ name: 'whole', recipe: 'import', wasThere: false, languages: [{ name: 'shell' }], env: { GREETING: 'welcome' } })
    expect(result.image).toMatchObject({
      digest: digest(made.manifest),
      user: 'app',
      workdir: '/app',
      entrypoint: ['/app/hello.sh'],
      cmd: ['x'],
      labels: { one: '1' },
    })
    expect(result.image?.leftOut).toEqual([
      { path: '/su', why: 'its set-id bit is taken away' },
      { path: '/root', why: 'a sandbox has its own there' },
    ])
    await using sandbox = await Sandbox.create({ template: 'whole', platform })
    expect((await sandbox.run(['./hello.sh'])).stdout).toBe('hello from /app, welcome\n')
    expect((await sandbox.run(['/entry.sh'])).stdout).toBe('entered\n')
    expect((await sandbox.run('cat /var/lib/app/state /home/app/notes; ls /app; echo $HOME; id -u')).stdout).toBe('state\nnotes\nhello.sh\n/home/user\n1000\n')
    expect((await sandbox.run('[ -L /leak ] && echo a link; cat /leak; ls -d /usr')).stdout).toBe('a link\n')
    expect((await sandbox.run('touch /app/x /bin/x')).stderr).toContain('Read-only file system')
    expect((await sandbox.run('cd; touch x /tmp/x /workspace/x /var/tmp/x && pwd')).stdout).toBe('/home/user\n')
    const receipt = await sandbox.receipt()
    expect([receipt.template, receipt.templateId, receipt.imageDigest]).toEqual(['whole', result.id, digest(made.manifest)])
  })

  test('can be written over as a whole by root in the cell, where there are ids for that', async () => {
    const probe = (await platform.probe()).find(({ driver }) => driver === 'bwrap')
    if (probe?.features['root-overlay'].available !== true) return
    await using sandbox = await Sandbox.create({ template: 'whole', root: 'overlay', user: 'root', platform })
    const found = await sandbox.run('echo new > /app/new; echo x >> /etc/passwd; touch /bin/x /var/lib/x /home/app/x /top && ls /app /home/app /; pwd')
    expect([found.stderr, found.exitCode]).toEqual(['', 0])
    expect(found.stdout.split('\n')).toEqual(expect.arrayContaining(['new', 'hello.sh', 'notes', 'x', 'top', 'entry.sh', '/app']))
  })

  test('has a name for each digest, whichever way it was packed, and is not made twice', async () => {
    const made = image(layers(), config)
    const saved = await builder.import(write('saved.tar', savedArchive(made)))
    const packed = await builder.import(write('saved.tar.gz', gzipSync(savedArchive(made))), { name: 'packed' })
    expect([packed.id, saved.image?.digest, builder.inspect('whole').image?.digest]).toEqual([saved.id, digest(made.config), digest(made.manifest)])
    expect(saved.id).not.toBe(builder.inspect('whole').id)
    expect((await builder.import(join(place, 'saved.tar'))).wasThere).toBe(true)
    expect(await builder.verify('saved')).toEqual([])
    for (const name of ['saved', 'packed']) await builder.remove(name)
  })

  test('may be a plain archive of a root', async () => {
    const [lower = Buffer.alloc(0)] = layers()
    const result = await builder.import(write('Plain Root.tar', lower))
    expect([result.name, result.image?.digest, result.image?.user]).toEqual(['plain-root', digest(lower), ''])
    await using sandbox = await Sandbox.create({ template: 'plain-root', platform })
    expect((await sandbox.run('cat /app/gone; pwd')).stdout).toBe('gone\n/workspace\n')
  })

  test('leaves room for mounts, also in folders that it has itself', async () => {
    const [lower = Buffer.alloc(0)] = layers()
    const more = tar(
      { name: 'opt/tool', content: 'tool\n' },
      { name: 'mnt/', type: '5' },
      { name: 'srv/', type: '5' },
      { name: 'data/', type: '5' },
      { name: 'input/old', content: 'old\n' },
    )
    await builder.import(write('mounted.tar', layoutArchive(image([lower, more], { Env: ['PATH=/bin'], WorkingDir: '/data' }))))
    const source = join(place, 'source')
    mkdirSync(source)
    writeFileSync(join(source, 'file'), 'mounted\n')
    const mounts = ['/mnt/in', '/opt/in', '/input', '/data/in'].map((target) => ({ source, target, mode: 'ro' as const }))
    await using sandbox = await Sandbox.create({ template: 'mounted', platform, mounts })
    expect((await sandbox.run('cat /mnt/in/file /opt/in/file /input/file in/file /opt/tool; ls /input; ls -d /srv; pwd')).stdout).toBe(
      'mounted\nmounted\nmounted\nmounted\ntool\nfile\n/srv\n/data\n',
    )
    await using without = await Sandbox.create({ template: 'mounted', platform })
    expect((await without.run('cat /input/old; pwd; touch /data/x /srv/x')).stdout).toBe('old\n/data\n')
  })

  test('sets no variable that a policy lets nobody set', async () => {
    const policy = { ceiling: { env: ['MINE'] } }
    await using sandbox = await Sandbox.create({ template: 'whole', platform, policy })
    expect((await sandbox.run('echo "$GREETING" $PATH')).stdout).toBe(' /bin\n')
  })
})

describe('an archive that is refused leaves nothing', { timeout }, () => {
  skipGroup(why)
  const nothing = (): unknown => [readdirSync(join(templateDir, 'drafts')), existsSync(join(templateDir, 'names', 'bad'))]

  test.each<[string, () => Buffer, unknown]>([
    ['that leads out', () => tar({ name: '../x', content: 'x' }), { code: 'invalid', message: expect.stringContaining('../x leads out of it') }],
    ['that is none', () => Buffer.from('no archive at all'.repeat(100)), { code: 'conflict' }],
    [
      'whose layer is another than its config says',
      () => {
        const made = image([tar({ name: 'a', content: '1' })])
        return savedArchive({ ...made, layers: [tar({ name: 'a', content: '2' })] })
      },
      { code: 'invalid', message: expect.stringMatching(/layer 1 is sha256:\w+, and its config says sha256:/) },
    ],
    [
      'whose config is another than its manifest says',
      () => {
        const made = image([tar({ name: 'a' })])
        return layoutArchive({
          ...made,
          blobs: new Map([...made.blobs].map(([name, blob]) => [name, blob.equals(made.config) ? Buffer.from('{"rootfs":{"diff_ids":[]}}') : blob])),
        })
      },
      { code: 'conflict', message: expect.stringContaining('is not what its digest says') },
    ],
    [
      'of another machine',
      () => savedArchive({ ...image([]), config: Buffer.from('{"architecture":"s390x","os":"linux","rootfs":{"diff_ids":[]}}') }),
      { code: 'unsupported' },
    ],
  ])('one %s', async (_name, make, error) => {
    await expect(builder.import(write('bad.tar', make()), { name: 'bad' })).rejects.toMatchObject(error as object)
    expect(nothing()).toEqual([[], false])
  })

  test('one under a name of our own, or none that there is', async () => {
    await expect(builder.import(write('bad.tar', tar()), { name: 'python' })).rejects.toMatchObject({ code: 'invalid', hint: '--name my-python' })
    await expect(builder.import(join(place, 'nowhere.tar'))).rejects.toMatchObject({ code: 'not-found' })
  })
})
