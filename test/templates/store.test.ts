import {
  appendFileSync,
  chmodSync,
  existsSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { TemplateInfo } from '../../src/contract/templates.js'
import { readTree, settleModes, writeManifest } from '../../src/templates/manifest.js'
import { recordText } from '../../src/templates/record.js'
import { seal, TemplateStore } from '../../src/templates/store.js'
import { createTemplates } from '../../src/templates/templates.js'
import { startScript } from '../sys/run-script.js'

let place: string
let store: TemplateStore

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'gbx-store-'))
  store = new TemplateStore(join(place, 'store'))
})
afterEach(() => rmSync(place, { recursive: true, force: true }))

const env = { PATH: '/usr/bin', LANG: 'C.UTF-8' }

/** A small tree in the store, without any package. */
async function keep(
  name: string,
  files: Readonly<Record<string, string>> = { 'usr/bin/tool': '#!tool', 'usr/share/deep/er/text': 'text', 'etc/passwd': 'root' },
): Promise<TemplateInfo> {
  const draft = store.newDraft()
  const root = join(draft, 'root')
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
    if (path.includes('/bin/')) chmodSync(join(root, path), 0o700)
  }
  symlinkSync('tool', join(root, 'usr/bin/link'))
  await settleModes(root)
  const manifest = writeManifest(await readTree(root), { shell: '/bin/sh', env })
  writeFileSync(join(draft, 'manifest'), manifest.text, { mode: 0o600 })
  const about = {
    recipe: 'made up',
    summary: 'made up',
    builtAt: '2026-01-02T03:04:05.000Z',
    shell: '/bin/sh',
    system: 'none',
    arch: 'x64',
    packages: [],
    inputs: 'none',
  }
  const info: TemplateInfo = { name, id: manifest.id, env, bytes: manifest.bytes, entries: manifest.entries, ...about }
  writeFileSync(join(draft, 'record.json'), recordText(info), { mode: 0o600 })
  await seal(draft)
  await store.publish(name, draft, info)
  rmSync(draft, { recursive: true, force: true })
  return info
}

function objectOf({ id }: Pick<TemplateInfo, 'id'>): string {
  return join(place, 'store', 'objects', id.slice('sha256:'.length))
}

function resolve(name: string) {
  return createTemplates({ store, cache: join(place, 'cache') }).resolve(name)
}

describe('what is kept', () => {
  test('is found by name, with what its programs start with and the folders that a cell is shown', async () => {
    const info = await keep('small')
    const object = objectOf(info)
    const { hold: _hold, ...root } = await resolve('small')
    expect(root).toEqual({
      name: 'small',
      id: info.id,
      binds: [
        { source: `${object}/root/etc`, target: '/etc' },
        { source: `${object}/root/usr`, target: '/usr' },
      ],
      symlinks: [{ path: '/bin', target: 'usr/bin' }],
      shell: '/bin/sh',
      env,
    })
    expect(await store.list()).toEqual([{ ...info, usedBy: [] }])
  })

  test('has the same id whoever builds it and whenever, and another for any other content or default', async () => {
    const one = await keep('one')
    utimesSync(join(objectOf(one), 'root/usr/bin/tool'), 1, 1)
    const lines = await readTree(join(objectOf(one), 'root'))
    expect(writeManifest(lines, { shell: '/bin/sh', env }).id).toBe(one.id)
    expect((await keep('two')).id).toBe(one.id)
    expect((await keep('three', { 'usr/bin/tool': '#!tooL', 'usr/share/deep/er/text': 'text', 'etc/passwd': 'root' })).id).not.toBe(one.id)
    expect(writeManifest(lines, { shell: '/bin/bash', env }).id).not.toBe(one.id)
    expect(writeManifest(lines, { shell: '/bin/sh', env: { ...env, MORE: '1' } }).id).not.toBe(one.id)
  })

  test('nobody but its owner can write, and nobody else can look', async () => {
    const info = await keep('small')
    const modes = ['root', 'root/usr/bin/tool', 'root/etc/passwd', 'root/usr/share'].map((path) =>
      (statSync(join(objectOf(info), path)).mode & 0o7777).toString(8),
    )
    expect(modes).toEqual(['755', '755', '644', '755'])
    expect((statSync(objectOf(info)).mode & 0o077) | (statSync(join(place, 'store')).mode & 0o077)).toBe(0)
  })

  test('what is built under a name that was there takes its place, and the former goes', async () => {
    const before = await keep('small')
    const after = await keep('small', { 'usr/bin/tool': 'another', 'etc/passwd': 'root' })
    expect((await resolve('small')).id).toBe(after.id)
    expect([existsSync(objectOf(before)), existsSync(objectOf(after))]).toEqual([false, true])
  })

  test('the former stays for as long as a sandbox uses it', async () => {
    const before = await keep('small')
    const held = (await resolve('small')).hold?.('a'.repeat(20))
    await keep('small', { 'usr/bin/tool': 'another', 'etc/passwd': 'root' })
    expect(existsSync(objectOf(before))).toBe(true)
    held?.[Symbol.dispose]()
    await store.sweep()
    expect(existsSync(objectOf(before))).toBe(false)
  })
})

describe('what is asked for and not there', () => {
  test('is told with what there is, and with the command that builds it where there is a recipe', async () => {
    await keep('small')
    await expect(resolve('nothing')).rejects.toMatchObject({
      code: 'invalid',
      message: "template: there is no 'nothing'; there are host, shell, python, node, small; data, polyglot can be built",
      hint: 'glovebox template build data',
    })
    await expect(resolve('data')).rejects.toMatchObject({
      code: 'invalid',
      message: "template: 'data' has not been built on this machine; there are host, shell, python, node, small",
      hint: 'glovebox template build data',
    })
  })

  test('a name that is a path is no name', async () => {
    await keep('small')
    expect([store.find('../names/small'), store.find('/etc'), store.find('')]).toEqual([undefined, undefined, undefined])
  })

  test('looking makes no folder', async () => {
    await expect(resolve('data')).rejects.toMatchObject({ code: 'invalid' })
    expect([await store.list(), existsSync(join(place, 'store'))]).toEqual([[], false])
  })
})

const damages: readonly { readonly name: string; readonly told: string; readonly isSeen: boolean; damage(root: string): void }[] = [
  {
    name: 'a program that was changed in place',
    told: 'usr/bin/tool has other content',
    isSeen: false,
    damage: (root) => appendFileSync(join(root, 'usr/bin/tool'), '!'),
  },
  {
    name: 'a file of /etc that was changed',
    told: 'etc/passwd has other content',
    isSeen: true,
    damage: (root) => appendFileSync(join(root, 'etc/passwd'), '!'),
  },
  { name: 'a file that was removed', told: 'usr/bin/tool is missing', isSeen: true, damage: (root) => unlinkSync(join(root, 'usr/bin/tool')) },
  { name: 'a file that was added', told: 'usr/bin/more was added', isSeen: true, damage: (root) => writeFileSync(join(root, 'usr/bin/more'), '') },
  {
    name: 'a mode that was changed',
    told: 'usr/bin/tool has mode 4755, not 0755',
    isSeen: false,
    damage: (root) => chmodSync(join(root, 'usr/bin/tool'), 0o4755),
  },
  {
    name: 'a folder that others can write to',
    told: 'usr/bin has mode 0777, not 0755',
    isSeen: true,
    damage: (root) => chmodSync(join(root, 'usr/bin'), 0o777),
  },
  {
    name: 'a link that leads elsewhere',
    told: 'usr/bin/link leads to other, not to tool',
    isSeen: true,
    damage: (root) => {
      unlinkSync(join(root, 'usr/bin/link'))
      symlinkSync('other', join(root, 'usr/bin/link'))
    },
  },
  {
    name: 'a folder that became a file',
    told: 'usr/share/deep is a file, not a folder',
    isSeen: true,
    damage: (root) => {
      rmSync(join(root, 'usr/share/deep'), { recursive: true })
      writeFileSync(join(root, 'usr/share/deep'), '')
    },
  },
]

describe('damage', () => {
  test('there is none: everything is compared, and the template is used', async () => {
    await keep('small')
    expect(await store.verify('small')).toEqual([])
    expect((await resolve('small')).name).toBe('small')
  })

  for (const { name, told, isSeen, damage } of damages) {
    test(`${name} is told by name, and the template is not used any more`, async () => {
      const info = await keep('small')
      damage(join(objectOf(info), 'root'))
      if (isSeen) await expect(resolve('small')).rejects.toMatchObject({ code: 'broken', hint: 'glovebox template inspect small --verify' })
      const differences = await store.verify('small')
      expect(differences.map(({ path, what }) => `${path} ${what}`)).toContain(told)
      await expect(resolve('small')).rejects.toMatchObject({
        code: 'broken',
        message: expect.stringContaining('template small is not used, because it is damaged: '),
      })
      expect(store.listing('small')?.damaged).toBe(`${differences[0]?.path} ${differences[0]?.what}`)
    })
  }

  test('a manifest or a record that is another is damage', async () => {
    const info = await keep('small')
    const record = join(objectOf(info), 'record.json')
    writeFileSync(record, readFileSync(record, 'utf8').replace('C.UTF-8', 'C.ASCII'))
    await expect(resolve('small')).rejects.toMatchObject({ code: 'broken' })
    expect(await store.verify('small')).toEqual([{ path: 'the record', what: 'is not what the id says' }])
    appendFileSync(join(objectOf(info), 'manifest'), '\n')
    expect((await store.verify('small'))[0]).toEqual({ path: 'the manifest', what: 'is not what the id says' })
  })

  test('a whole one that was copied is used once it was verified, and building it again mends a damaged one', async () => {
    const info = await keep('small')
    lutimesSync(join(objectOf(info), 'root/usr/bin'), 1, 1)
    await expect(resolve('small')).rejects.toMatchObject({ code: 'broken' })
    expect(await store.verify('small')).toEqual([])
    expect((await resolve('small')).id).toBe(info.id)
    unlinkSync(join(objectOf(info), 'root/usr/bin/tool'))
    await keep('small')
    expect([(await resolve('small')).id, await store.verify('small')]).toEqual([info.id, []])
  })

  test('a record that cannot be read is listed as damaged, and can be removed', async () => {
    const info = await keep('small')
    writeFileSync(join(objectOf(info), 'record.json'), '{')
    await expect(resolve('small')).rejects.toMatchObject({ code: 'broken', hint: 'glovebox template build small' })
    expect(await store.list()).toMatchObject([{ name: 'small', damaged: 'template small is damaged: its record cannot be read' }])
    expect([await store.remove('small'), await store.list()]).toEqual([true, []])
  })
})

describe('removing', () => {
  test('takes all of it, also what its modes protect, and is false when there was none', async () => {
    const info = await keep('small')
    chmodSync(join(objectOf(info), 'root/usr/share/deep'), 0)
    expect([await store.remove('small'), await store.remove('small')]).toEqual([true, false])
    expect(['objects', 'drafts', 'names'].map((part) => readdirSync(join(place, 'store', part)))).toEqual([[], [], []])
  })

  test('is refused while a sandbox uses it, which is named', async () => {
    const info = await keep('small')
    const held = (await resolve('small')).hold?.('b'.repeat(20))
    await expect(store.remove('small')).rejects.toMatchObject({
      code: 'conflict',
      message: `template small cannot be removed: sandbox ${'b'.repeat(20)} uses it`,
    })
    expect([(await store.list())[0]?.usedBy, existsSync(objectOf(info))]).toEqual([['b'.repeat(20)], true])
    held?.[Symbol.dispose]()
    expect(await store.remove('small')).toBe(true)
  })

  test('a sandbox of an engine that was killed does not keep it', async () => {
    await keep('small')
    const script = await startScript(new URL('programs/hold-template.ts', import.meta.url), [join(place, 'store'), 'small'])
    expect(await script.firstLine).toBe('held')
    await expect(store.remove('small')).rejects.toMatchObject({ code: 'conflict' })
    script.child.kill('SIGKILL')
    await script.ended
    expect(await store.remove('small')).toBe(true)
  })

  test('what has another name too stays under that one', async () => {
    const info = await keep('one')
    await keep('two')
    expect(await store.remove('one')).toBe(true)
    expect([(await resolve('two')).id, existsSync(objectOf(info))]).toEqual([info.id, true])
  })

  test('whoever would use it at the same moment is told that it is gone', async () => {
    const info = await keep('small')
    const { hold } = await resolve('small')
    renameSync(objectOf(info), join(place, 'elsewhere'))
    expect(() => hold?.('c'.repeat(20))).toThrow(expect.objectContaining({ code: 'conflict', hint: 'glovebox template build small' }))
    expect(readdirSync(join(place, 'store', 'uses', info.id.slice(7)))).toEqual([])
  })
})
