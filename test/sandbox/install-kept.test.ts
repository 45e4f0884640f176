import { appendFileSync, chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Sandbox } from '../../src/sandbox/index.js'
import { openSite, type Site } from '../egress/clients-site.js'
import { rejectionOf } from '../engine/collect.js'
import { type NetworkGround, openGround } from '../engine/network-ground.js'

let ground: NetworkGround
let site: Site

beforeEach(async ({ skip }) => {
  ground = await openGround({ policy: { defaults: { limits: { cpus: 2, memory: '1g' } } } })
  site = await openSite(ground.authority)
  if (ground.without !== undefined) skip(ground.without)
})
afterEach(async () => {
  await ground[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
})

const host = (name: string): string => `${name}.example.com:${site.port}`
const indexed = { pip: 'simple', npm: '' } as const
const files = { pip: join('simple', 'tiny', 'tiny-1.0-py3-none-any.whl'), npm: 'tiny-1.0.0.tgz' } as const
const shown = { pip: ['python3', '-c', 'import tiny; print(tiny.value)'], npm: ['node', '-p', "require('tiny')"] } as const

async function open(names = ['index'], more: object = { terminate: true }): Promise<Sandbox> {
  return Sandbox.create({ platform: ground.platform, network: { allow: names.map(host), ...more } })
}
const install = (sandbox: Sandbox, manager: 'pip' | 'npm', at = 'index'): Promise<void> =>
  sandbox.install(['tiny'], { manager, index: `https://${host(at)}/${indexed[manager]}` })
const downloads = (): string[] => site.visits.map(({ url }) => url).filter((url) => /\.(whl|tgz)$/.test(url))
const shelf = (): string => join(ground.folder, 'packages')
const kept = (): string[] =>
  readdirSync(shelf(), { recursive: true, withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []))

describe.each(['pip', 'npm'] as const)('what %s has fetched', (manager) => {
  test('is fetched once for all sandboxes, and asked about and written down each time', async () => {
    for (const round of [1, 2, 3]) {
      await using sandbox = await open()
      await install(sandbox, manager)
      expect((await sandbox.run([...shown[manager]])).stdout).toBe(`tiny of ${manager}\n`)
      expect(downloads(), `in round ${round}`).toHaveLength(1)
      const { latest } = await sandbox.network.summary()
      expect(latest.filter(({ path }) => path?.endsWith(files[manager]))).toMatchObject([{ verdict: 'allowed', status: 200 }])
    }
    const [file = '', ...others] = kept()
    expect(others).toEqual([])
    expect([statSync(file).mode & 0o777, statSync(shelf()).mode & 0o777]).toEqual([0o400, 0o700])
    expect(readFileSync(file).equals(readFileSync(join(site.folder, files[manager])))).toBe(true)
  })

  test('M-19 is refused where it is not what the index promised, and nothing of it is kept', async () => {
    await using sandbox = await open()
    const file = join(site.folder, files[manager])
    const good = readFileSync(file)
    const promise = manager === 'npm' ? () => undefined : () => writeFileSync(file, Buffer.concat([good.subarray(0, -1), Buffer.of(7)]))
    promise()
    if (manager === 'npm') site.lie()
    expect(await rejectionOf(install(sandbox, manager))).toMatchObject({ code: 'conflict' })
    expect(downloads().length).toBeGreaterThan(0)
    expect(kept()).toEqual([])
    const refused = (await sandbox.network.summary()).latest.filter(({ verdict }) => verdict === 'failed')
    expect(refused[0]?.reason).toContain('what came is not what the index promised')
  })

  test('is fetched anew where what is kept was damaged, and that is gone', async () => {
    await using first = await open()
    await install(first, manager)
    const [file = ''] = kept()
    chmodSync(file, 0o600)
    appendFileSync(file, 'more')
    await using second = await open()
    await install(second, manager)
    expect((await second.run([...shown[manager]])).stdout).toBe(`tiny of ${manager}\n`)
    expect(downloads()).toHaveLength(2)
    expect(kept().map((path) => readFileSync(path).equals(readFileSync(join(site.folder, files[manager]))))).toEqual([true])
  })
})

test('another place that promises the same is asked itself: nobody gets by a hash what he was not given', async () => {
  await using first = await open()
  await install(first, 'pip')
  await using second = await open(['other'])
  await install(second, 'pip', 'other')
  expect(site.visits.filter(({ url }) => url.endsWith('.whl')).map(({ headers }) => headers.host)).toEqual([host('index'), host('other')])
})

test('M-19 what a program claims or sends reaches nobody else', async () => {
  await using first = await open()
  // Without an index that promised it, nothing is kept, whatever is asked for.
  const url = `https://${host('index')}/${files.pip}`
  await first.run(['curl', '-sS', '-o', '/dev/null', url])
  await first.run(['curl', '-sS', '-o', '/dev/null', '-X', 'POST', '--data', 'mine', url])
  expect(() => kept()).toThrow('ENOENT')
  await install(first, 'pip')
  const count = downloads().length
  // One who was promised nothing gets it from where it is.
  await using second = await open()
  await second.run(['curl', '-sS', '-o', '/dev/null', url])
  expect(downloads()).toHaveLength(count + 1)
})

test('what is asked for with a credential, of the host or of the program, is not kept', async () => {
  const credentials = [{ host: host('index'), header: 'x-token', value: 'secret' }]
  await using withOurs = await open(['index'], { terminate: true, credentials })
  await install(withOurs, 'pip')
  await using withTheirs = await open()
  await withTheirs.run(['curl', '-sS', '-H', 'Accept: application/vnd.pypi.simple.v1+html', '-o', '/dev/null', `https://${host('index')}/simple/tiny/`])
  await withTheirs.run(['curl', '-sS', '-H', 'Authorization: mine', '-o', '/dev/null', `https://${host('index')}/${files.pip}`])
  expect(() => kept()).toThrow('ENOENT')
})

test('where TLS is passed on unread nothing is kept', async () => {
  for (const _ of [1, 2]) {
    await using sandbox = await open(['index'], {})
    await install(sandbox, 'pip')
  }
  expect(downloads()).toHaveLength(2)
  expect(() => kept()).toThrow('ENOENT')
})

test('a half file that somebody who was killed left is never taken for a whole one', async () => {
  await using first = await open()
  await install(first, 'pip')
  const [file = ''] = kept()
  const half = readFileSync(file).subarray(0, 100)
  renameSync(file, `${file}-away`)
  mkdirSync(join(shelf(), 'drafts'), { recursive: true })
  writeFileSync(join(shelf(), 'drafts', 'left'), half)
  writeFileSync(file, half)
  await using second = await open()
  await install(second, 'pip')
  expect((await second.run([...shown.pip])).stdout).toBe('tiny of pip\n')
  expect(downloads()).toHaveLength(2)
})

test('a folder that others can write to is not used', async () => {
  mkdirSync(shelf())
  chmodSync(shelf(), 0o777)
  for (const _ of [1, 2]) {
    await using sandbox = await open()
    await install(sandbox, 'pip')
  }
  expect(downloads()).toHaveLength(2)
  expect(kept()).toEqual([])
})
