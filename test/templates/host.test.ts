import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createHostTemplates } from '../../src/templates/host.js'

let place: string

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'gbx-templates-'))
})

afterEach(() => rmSync(place, { recursive: true }))

function plant(path: string, text = '', mode = 0o644): void {
  mkdirSync(dirname(join(place, path)), { recursive: true })
  writeFileSync(join(place, path), text)
  chmodSync(join(place, path), mode)
}

function link(path: string, target: string): void {
  mkdirSync(dirname(join(place, path)), { recursive: true })
  symlinkSync(target, join(place, path))
}

function templates() {
  return createHostTemplates({ host: join(place, 'host'), cache: join(place, 'cache') })
}

/** The /etc of the planted host's template. */
async function etc(): Promise<string> {
  const { binds } = await templates().resolve('host')
  return binds.find(({ target }) => target === '/etc')?.source as string
}

describe('on this machine', () => {
  test('host, shell, python and node are the same root under their own names', async () => {
    const own = createHostTemplates({ cache: join(place, 'cache') })
    const host = await own.resolve('host')
    expect(host).toMatchObject({ name: 'host', shell: '/bin/bash', env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' } })
    expect(host.binds[0]).toEqual({ source: '/usr', target: '/usr' })
    for (const name of ['shell', 'python', 'node']) expect(await own.resolve(name)).toEqual({ ...host, name })
  })

  test('the /etc has what programs link, trust and draw with, and no shadow, host name or key', async () => {
    const { binds } = await createHostTemplates({ cache: join(place, 'cache') }).resolve('host')
    const names = readdirSync(binds.at(-1)?.source as string)
    expect(names).toEqual(expect.arrayContaining(['group', 'hosts', 'ld.so.cache', 'machine-id', 'nsswitch.conf', 'os-release', 'passwd', 'resolv.conf']))
    for (const name of ['shadow', 'gshadow', 'sudoers', 'ssh', 'fstab', 'environment', 'crontab', 'npmrc', 'pip.conf']) expect(names).not.toContain(name)
    expect(existsSync(join(binds.at(-1)?.source as string, 'ssl/private'))).toBe(false)
  })
})

test('a name that there is not is invalid, with the names that there are', async () => {
  for (const name of ['ruby', 'constructor', '__proto__']) {
    await expect(templates().resolve(name)).rejects.toMatchObject({
      code: 'invalid',
      message: `template: there is no '${name}'; there are host, shell, python, node`,
    })
  }
})

test('a language that the host lacks is unsupported, with the command that installs it', async () => {
  plant('host/usr/bin/env')
  link('host/usr/bin/node', '/opt/node/bin/node')
  await expect(templates().resolve('python')).rejects.toMatchObject({
    code: 'unsupported',
    message: expect.stringContaining('/usr/bin/python3') as string,
    hint: expect.stringContaining('python3') as string,
  })
  await expect(templates().resolve('node')).rejects.toMatchObject({ code: 'unsupported', hint: expect.stringContaining('nodejs') as string })
})

test('folders of the root are links where /usr is merged and binds where it is not', async () => {
  link('host/bin', 'usr/bin')
  link('host/lib64', '/usr/lib64')
  link('host/lib32', '/opt/lib32')
  mkdirSync(join(place, 'host/sbin'), { recursive: true })
  const { symlinks, binds, shell } = await templates().resolve('host')
  expect(symlinks).toEqual([
    { path: '/bin', target: 'usr/bin' },
    { path: '/lib64', target: '/usr/lib64' },
  ])
  expect(binds.map(({ target }) => target)).toEqual(['/usr', '/sbin', '/etc'])
  expect(shell).toBe('/bin/sh')
})

test.each<[string, () => void, string]>([
  [
    '/bin is /usr/bin',
    () => {
      plant('host/usr/bin/bash', '', 0o755)
      link('host/bin', 'usr/bin')
    },
    '/bin/bash',
  ],
  ['only /bin has it', () => plant('host/bin/bash', '', 0o755), '/bin/bash'],
  [
    'only /usr/bin has it',
    () => {
      plant('host/usr/bin/bash', '', 0o755)
      plant('host/bin/sh', '', 0o755)
    },
    '/usr/bin/bash',
  ],
  [
    'a link to it leads out of what the cell has',
    () => {
      plant('host/opt/bash', '', 0o755)
      link('host/usr/bin/bash', '../../opt/bash')
      link('host/bin', 'usr/bin')
    },
    '/bin/sh',
  ],
  ['there is none', () => plant('host/usr/bin/sh', '', 0o755), '/bin/sh'],
])('the shell is bash where the cell has it: %s', async (_, prepare, expected) => {
  mkdirSync(join(place, 'host/usr'), { recursive: true })
  prepare()
  expect((await templates().resolve('host')).shell).toBe(expected)
})

test('users, hosts and resolver are ours, whatever the host has', async () => {
  plant('host/etc/passwd', 'ada:x:1000:1000::/home/ada:/bin/zsh\n')
  plant('host/etc/hosts', '10.0.0.1 secret-db\n')
  plant('host/etc/machine-id', 'f00d\n')
  plant('host/etc/resolv.conf', 'nameserver 10.0.0.1\n')
  plant('host/etc/shadow', 'root:secret\n')
  const folder = await etc()
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
  expect(
    read('passwd')
      .split('\n')
      .map((line) => line.split(':').slice(0, 4).join(':')),
  ).toEqual(['root:x:0:0', 'user:x:1000:1000', 'warden:x:65532:65532', 'nobody:x:65534:65534', ''])
  expect([read('machine-id'), read('resolv.conf')]).toEqual(['', 'nameserver 127.0.0.1\n'])
  expect(read('hosts')).not.toContain('secret-db')
  expect(readdirSync(folder).sort()).toEqual(['group', 'host.conf', 'hostname', 'hosts', 'machine-id', 'nsswitch.conf', 'passwd', 'resolv.conf'])
})

test('only what anybody may read is copied, even by root', async () => {
  plant('host/etc/ssl/certs/public.pem', 'public')
  plant('host/etc/ssl/certs/private.key', 'secret', 0o640)
  plant('host/etc/fonts/closed/fonts.conf', 'secret')
  chmodSync(join(place, 'host/etc/fonts/closed'), 0o700)
  const folder = await etc()
  expect(readdirSync(join(folder, 'ssl/certs'))).toEqual(['public.pem'])
  expect(readdirSync(join(folder, 'fonts'))).toEqual([])
})

test('links that the cell can follow stay links; others become what they lead to, if anybody may read that', async () => {
  plant('host/etc/ssl/certs/real.pem', 'real')
  link('host/etc/ssl/certs/abc.0', 'real.pem')
  link('host/etc/ssl/certs/usr.pem', '/usr/share/ca.pem')
  link('host/etc/ssl/certs/open.pem', '/etc/passwd')
  plant('closed/secret.pem', 'secret')
  chmodSync(join(place, 'closed'), 0o700)
  link('host/etc/ssl/certs/secret.pem', join(place, 'closed/secret.pem'))
  link('host/etc/ssl/certs/dangling.pem', '/nowhere')
  const certs = join(await etc(), 'ssl/certs')
  expect(readdirSync(certs).sort()).toEqual(['abc.0', 'open.pem', 'real.pem', 'usr.pem'])
  expect([readlinkSync(join(certs, 'abc.0')), readlinkSync(join(certs, 'usr.pem'))]).toEqual(['real.pem', '/usr/share/ca.pem'])
  expect(lstatSync(join(certs, 'open.pem')).isFile()).toBe(true)
  expect(readFileSync(join(certs, 'open.pem'), 'utf8')).toBe(readFileSync('/etc/passwd', 'utf8'))
})

test('engines that build at the same moment get the same tree, and no draft is left', async () => {
  plant('host/etc/mime.types', 'text/plain txt')
  const folders = await Promise.all(Array.from({ length: 8 }, etc))
  expect(new Set(folders).size).toBe(1)
  expect(readdirSync(join(place, 'cache')).length).toBe(1)
})

test('a host that changed gets another tree', async () => {
  plant('host/etc/ld.so.cache', 'one')
  const before = await etc()
  plant('host/etc/ld.so.cache', 'another')
  const after = await etc()
  expect(after).not.toBe(before)
  expect(readFileSync(join(after, 'ld.so.cache'), 'utf8')).toBe('another')
})

test('a tree that was cleared away is built again by the same engine', async () => {
  const own = templates()
  const source = async () => (await own.resolve('host')).binds.at(-1)?.source as string
  rmSync(await source(), { recursive: true })
  expect(existsSync(join(await source(), 'passwd'))).toBe(true)
})
