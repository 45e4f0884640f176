import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CommandRules, TemplateRoot } from '../../src/contract/driver.js'
import { readProgramFile } from '../../src/sys/program-file.js'
import { createCommandResolver } from '../../src/templates/commands.js'
import { createHostTemplates } from '../../src/templates/host.js'
import { testUnless } from '../unless.js'

let place: string
const found = readProgramFile('/usr/bin/true')
const loader = found.kind === 'program' ? (found.interpreter ?? '') : ''

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'gbx-commands-'))
  for (const folder of ['usr/bin', 'usr/lib', 'usr/share', 'etc/alternatives']) mkdirSync(join(place, 'host', folder), { recursive: true })
  for (const name of ['true', 'tool', 'other']) program(`usr/bin/${name}`)
  copyFileSync(loader, join(place, 'host/usr/lib/ld.so'))
  chmodSync(join(place, 'host/usr/lib/ld.so'), 0o755)
  write('usr/lib/libx.so', 'library')
  write('usr/share/doc.txt', 'text')
})

afterEach(() => rmSync(place, { recursive: true }))

function program(path: string): void {
  mkdirSync(dirname(join(place, 'host', path)), { recursive: true })
  copyFileSync('/usr/bin/true', join(place, 'host', path))
  chmodSync(join(place, 'host', path), 0o755)
}

function write(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(join(place, 'host', path)), { recursive: true })
  writeFileSync(join(place, 'host', path), text)
  chmodSync(join(place, 'host', path), mode)
}

function root(): TemplateRoot {
  return {
    name: 'planted',
    binds: [
      { source: join(place, 'host/usr'), target: '/usr' },
      { source: join(place, 'host/etc'), target: '/etc' },
    ],
    symlinks: [
      { path: '/bin', target: 'usr/bin' },
      // Where /usr/bin/true of this machine says its loader is.
      { path: dirname(loader), target: 'loaders' },
      { path: '/loaders', target: '/etc/loaders' },
    ],
    shell: '/bin/sh',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
  }
}

function resolve(...names: string[]): Promise<CommandRules> {
  mkdirSync(join(place, 'host/etc/loaders'), { recursive: true })
  rmSync(join(place, 'host/etc/loaders', basename(loader)), { force: true })
  symlinkSync('/usr/lib/ld.so', join(place, 'host/etc/loaders', basename(loader)))
  return createCommandResolver({ cache: join(place, 'cache') })(names, root())
}

describe('a command', () => {
  test('is granted with its loader; everything but the other programs may be read', async () => {
    expect(await resolve('tool')).toEqual({
      executable: ['/usr/bin/tool', '/usr/lib/ld.so'],
      readable: ['/etc', '/usr/bin/tool', '/usr/lib', '/usr/share'],
      unlisted: '/usr/bin/true',
    })
  })

  test('may be an absolute path, also through links that the template itself has', async () => {
    symlinkSync('/etc/alternatives/editor', join(place, 'host/usr/bin/editor'))
    symlinkSync('/bin/tool', join(place, 'host/etc/alternatives/editor'))
    for (const name of ['/bin/tool', 'editor', '/usr/bin/../bin/./editor'])
      expect((await resolve(name)).executable).toEqual(['/usr/bin/tool', '/usr/lib/ld.so'])
  })

  test('is one file under all its names', async () => {
    linkSync(join(place, 'host/usr/bin/tool'), join(place, 'host/usr/share/twin'))
    expect(await resolve('tool')).toMatchObject({
      executable: ['/usr/bin/tool', '/usr/lib/ld.so'],
      readable: ['/etc', '/usr/bin/tool', '/usr/lib', '/usr/share'],
    })
  })

  test('is also its copies under the same name, and no other file that is called so', async () => {
    program('usr/lib/core/tool')
    program('usr/lib/other/tool')
    appendFileSync(join(place, 'host/usr/lib/other/tool'), 'x')
    program('usr/lib/core/true')
    expect(await resolve('tool')).toEqual({
      executable: ['/usr/bin/tool', '/usr/lib/ld.so', '/usr/lib/core/tool'],
      readable: ['/etc', '/usr/bin/tool', '/usr/lib/core/tool', '/usr/lib/ld.so', '/usr/lib/libx.so', '/usr/share'],
      unlisted: '/usr/bin/true',
    })
  })

  test('that is a script is granted with its interpreter, and what env calls', async () => {
    write('usr/bin/sh', readFileSync('/usr/bin/true', 'latin1'))
    copyFileSync('/usr/bin/true', join(place, 'host/usr/bin/env'))
    copyFileSync('/usr/bin/true', join(place, 'host/usr/bin/sh'))
    for (const name of ['sh', 'env']) chmodSync(join(place, 'host/usr/bin', name), 0o755)
    write('usr/bin/plain', '#!/bin/sh\n', 0o755)
    write('usr/bin/nested', '#!/usr/bin/plain\n', 0o755)
    write('usr/bin/called', '#!/usr/bin/env -S A=b tool -u\n', 0o755)
    expect((await resolve('plain')).executable).toEqual(['/usr/bin/plain', '/usr/bin/sh', '/usr/lib/ld.so'])
    expect((await resolve('nested')).executable).toEqual(['/usr/bin/nested', '/usr/bin/plain', '/usr/bin/sh', '/usr/lib/ld.so'])
    expect((await resolve('called')).executable).toEqual(['/usr/bin/called', '/usr/bin/env', '/usr/lib/ld.so', '/usr/bin/tool'])
  })

  test('none at all: nothing may be executed, and no program be read', async () => {
    expect(await resolve()).toEqual({ executable: [], readable: ['/etc', '/usr/lib', '/usr/share'], unlisted: '/usr/bin/true' })
  })

  test('all there are: whole folders may be read, and there is nothing to try', async () => {
    expect(await resolve('tool', 'true', 'other')).toEqual({
      executable: ['/usr/bin/tool', '/usr/lib/ld.so', '/usr/bin/true', '/usr/bin/other'],
      readable: ['/etc', '/usr'],
      unlisted: undefined,
    })
  })
})

describe('a wrong command names its place in the list', () => {
  test.each([
    ['a name that there is not', ['tool', 'nothing'], "commands[1]: there is no 'nothing' in /usr/local/bin:/usr/bin:/bin"],
    ['a path that there is not', ['/usr/bin/nothing'], 'commands[0]: there is no /usr/bin/nothing in the template'],
    ['a path of the host’s that the cell has not', ['/proc/self/exe'], 'commands[0]: there is no /proc/self/exe in the template'],
    ['a link that leaves the template', ['outside'], "commands[0]: there is no 'outside' in /usr/local/bin:/usr/bin:/bin"],
    ['a link to itself', ['loop'], "commands[0]: there is no 'loop' in /usr/local/bin:/usr/bin:/bin"],
    ['a path upward', ['/usr/../../../bin/sh'], 'commands[0]: there is no /usr/../../../bin/sh in the template'],
    ['a relative path', ['bin/tool'], "commands[0]: 'bin/tool' must be a name, or an absolute path as the cell sees it"],
    ['a folder', ['/usr/bin'], 'commands[0]: /usr/bin is a folder'],
    ['a file without an execute bit', ['/usr/lib/libx.so'], 'commands[0]: /usr/lib/libx.so is not executable'],
    ['a name of such a file', ['bitless'], 'commands[0]: /usr/bin/bitless is not executable'],
    ['a text', ['text'], 'commands[0]: /usr/bin/text is neither a program nor a script with #!'],
    ['a script without its interpreter', ['orphan'], 'commands[0]: /usr/bin/orphan needs /usr/bin/ruby, which the template does not have'],
    ['a script that calls what is not there', ['caller'], "commands[0]: /usr/bin/caller needs 'ruby', which the template does not have"],
    ['a script that interprets itself', ['/usr/bin/ouroboros', 'tail'], 'commands[1]: /usr/bin/e is the interpreter of too many interpreters'],
  ])('%s', async (_, names, message) => {
    program('usr/bin/env')
    symlinkSync('/opt/outside/tool', join(place, 'host/usr/bin/outside'))
    symlinkSync('loop', join(place, 'host/usr/bin/loop'))
    write('usr/bin/bitless', '#!/bin/true\n')
    write('usr/bin/text', 'echo\n', 0o755)
    write('usr/bin/orphan', '#!/usr/bin/ruby\n', 0o755)
    write('usr/bin/caller', '#!/usr/bin/env ruby\n', 0o755)
    write('usr/bin/ouroboros', '#!/usr/bin/ouroboros\n', 0o755)
    for (const [script, next] of ['ta', 'ab', 'bc', 'cd', 'de'].map((pair) => [...pair]))
      write(`usr/bin/${script === 't' ? 'tail' : script}`, `#!/usr/bin/${next}\n`, 0o755)
    program('usr/bin/e')
    await expect(resolve(...names)).rejects.toMatchObject({ code: 'invalid', message })
  })
})

describe('what may be read leaves out', () => {
  test('a program without an execute bit, in a folder of data', async () => {
    program('usr/share/deep/er/stub')
    chmodSync(join(place, 'host/usr/share/deep/er/stub'), 0o644)
    write('usr/share/deep/text', 'text')
    expect((await resolve('tool')).readable).toEqual(['/etc', '/usr/bin/tool', '/usr/lib', '/usr/share/deep/text', '/usr/share/doc.txt'])
  })

  testUnless(process.getuid?.() === 0 && 'root can look into everything')('what could not be looked into', async () => {
    write('usr/share/secret/file', 'text')
    write('usr/share/closed', 'text', 0o000)
    chmodSync(join(place, 'host/usr/share/secret'), 0o000)
    try {
      expect((await resolve('tool')).readable).toEqual(['/etc', '/usr/bin/tool', '/usr/lib', '/usr/share/doc.txt'])
    } finally {
      chmodSync(join(place, 'host/usr/share/secret'), 0o755)
    }
  })

  test('no scripts: an interpreter that is listed could be given the same text', async () => {
    write('usr/share/module', '#!/usr/bin/tool\n', 0o755)
    expect((await resolve('tool')).readable).toContain('/usr/share')
  })
})

describe('the index of programs', () => {
  const kept = () => readdirSync(join(place, 'cache'))

  test('is kept in one file, and no draft, when many ask at once', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => resolve('tool')))
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
    expect(kept()).toEqual([expect.stringMatching(/^[0-9a-f]{32}\.index$/)])
  })

  test('notices a program that appears, moves or goes, at any depth', async () => {
    mkdirSync(join(place, 'host/usr/share/deep/er'), { recursive: true })
    const readable = async () => (await resolve('tool')).readable.filter((path) => path.startsWith('/usr/share'))
    expect(await readable()).toEqual(['/usr/share'])
    program('usr/share/deep/er/new')
    expect(await readable()).toEqual(['/usr/share/doc.txt'])
    rmSync(join(place, 'host/usr/share/deep/er/new'))
    expect(await readable()).toEqual(['/usr/share'])
    expect(kept()).toHaveLength(1)
  })

  test('is built again when its file was cut short or changed', async () => {
    const rules = await resolve('tool')
    const file = join(place, 'cache', kept()[0] as string)
    for (const spoil of [() => writeFileSync(file, ''), () => appendFileSync(file, ' '), () => writeFileSync(file, readFileSync(file).subarray(0, 60))]) {
      spoil()
      expect(await resolve('tool')).toEqual(rules)
    }
  })

  test('does without a place to keep it', async () => {
    await resolve('tool')
    const rules = await createCommandResolver({ cache: '/proc/nowhere' })(['tool'], root())
    expect(rules.executable).toEqual(['/usr/bin/tool', '/usr/lib/ld.so'])
  })
})

describe('on this machine', () => {
  test('python3 and git are found with the loader, and few rules cover all the rest', async () => {
    const host = await createHostTemplates({ cache: join(place, 'cache') }).resolve('host')
    const { executable, readable, unlisted } = await createCommandResolver({ cache: join(place, 'cache') })(['/usr/bin/python3', 'git'], host)
    expect(executable.slice(3).filter((path) => !/\/(git|python3\.\d+)$/.test(path))).toEqual([])
    expect(executable[0]).toMatch(/^\/usr\/bin\/python3\.\d+$/)
    expect(executable[2]).toBe('/usr/bin/git')
    expect(unlisted).toBe('/usr/bin/true')
    expect(readable.length).toBeLessThan(8000)
    expect(readable).toContain('/etc')
    for (const hidden of ['/usr', '/usr/bin', '/usr/bin/bash', '/usr/bin/true', '/usr/bin/dash']) expect(readable).not.toContain(hidden)
  })
})
