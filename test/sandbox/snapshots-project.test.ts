import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPlatform, type Platform, Sandbox } from '../../src/index.js'
import { skipGroup } from '../unless.js'

/** A real project worked on: a git repository with a test suite, changed, looked at, kept and tried in two ways at once. */

const folder = mkdtempSync(join(tmpdir(), 'gbx-project-'))
const platform: Platform = createPlatform({ snapshotDir: join(folder, 'snapshots') })
const probe = (await platform.probe()).find(({ driver }) => driver === 'bwrap')
skipGroup(probe?.available === true ? false : 'bwrap cannot build cells here')

const project = join(folder, 'project')
const tests = ['/usr/bin/python3', '-B', '-m', 'unittest', '-q'] as const
let sandbox: Sandbox

beforeAll(async () => {
  mkdirSync(join(project, 'tests'), { recursive: true })
  writeFileSync(join(project, 'sums.py'), 'def add(a, b):\n    return a - b\n')
  writeFileSync(join(project, 'tests', '__init__.py'), '')
  writeFileSync(
    join(project, 'tests', 'test_sums.py'),
    'import unittest\nfrom sums import add\n\nclass Sums(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n',
  )
  writeFileSync(join(project, 'notes.txt'), 'to be removed\n')
  const git = (...args: string[]): void => {
    const { status, stderr } = spawnSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', ...args], { cwd: project, encoding: 'utf8' })
    expect([status, status === 0 ? '' : stderr]).toEqual([0, ''])
  }
  git('init', '-q')
  git('add', '.')
  git('commit', '-qm', 'A sum that is none')
  if (probe?.available) sandbox = await Sandbox.create({ platform, limits: { time: '30s' }, name: 'project' })
})
afterAll(async () => {
  await platform[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

async function passes(where: Sandbox): Promise<boolean> {
  const { exitCode, stderr } = await where.run([...tests], { cwd: '/workspace/project' })
  expect(stderr).toMatch(exitCode === 0 ? /OK/ : /FAILED/)
  return exitCode === 0
}

function shown(changes: Awaited<ReturnType<Sandbox['diff']>>): string[] {
  return changes.map(({ type, entry, path }) => `${type} ${entry} ${path}`)
}

async function unpacked(archive: AsyncIterable<Uint8Array>): Promise<string[]> {
  const place = mkdtempSync(join(folder, 'export-'))
  await writeFile(join(place, 'a.tar'), archive)
  const { status, stdout } = spawnSync('tar', ['tf', 'a.tar'], { cwd: place, encoding: 'utf8' })
  expect(status).toBe(0)
  return stdout.trim().split('\n')
}

test('its tests fail, an edit makes them pass, and exactly the edit is told and taken out', async () => {
  await sandbox.files.upload(project, '/workspace/project')
  expect(await passes(sandbox)).toBe(false)
  const before = await sandbox.snapshot({ name: 'as uploaded' })
  expect(before).toMatchObject({ name: 'as uploaded', template: 'host' })
  expect(shown(await sandbox.diff({ since: before.id }))).toEqual([])

  await sandbox.files.write('/workspace/project/sums.py', 'def add(a, b):\n    return a + b\n')
  await sandbox.run('rm notes.txt && echo new > CHANGES.md', { cwd: '/workspace/project' })
  expect(await passes(sandbox)).toBe(true)

  const changes = await sandbox.diff({ since: 'as uploaded' })
  expect(changes.map(({ type, entry, path, size }) => [type, entry, path, size])).toEqual([
    ['added', 'file', '/workspace/project/CHANGES.md', 4],
    ['removed', 'file', '/workspace/project/notes.txt', 14],
    ['changed', 'file', '/workspace/project/sums.py', 32],
  ])
  expect(await unpacked(await sandbox.export({ since: before.id }))).toEqual([
    'workspace/project/.wh.notes.txt',
    'workspace/project/CHANGES.md',
    'workspace/project/sums.py',
  ])
  const log = await sandbox.run(['git', 'status', '--porcelain'], { cwd: '/workspace/project' })
  expect([log.exitCode, log.stdout]).toEqual([0, ' D notes.txt\n M sums.py\n?? CHANGES.md\n'])
})

test('two forks go their own ways, and neither touches the other nor where they come from', async () => {
  const [one, other] = (await sandbox.fork(2, { metadata: { try: 'two' } })) as [Sandbox, Sandbox]
  expect(one).toBeInstanceOf(Sandbox)
  expect((await one.info()).spec).toMatchObject({ name: 'project', metadata: { try: 'two' }, limits: { timeMs: 30_000 } })
  expect([await passes(one), await passes(other)]).toEqual([true, true])
  await one.files.write('/workspace/project/sums.py', 'def add(a, b):\n    return 0\n')
  await other.run('rm -r tests', { cwd: '/workspace/project' })
  expect(await passes(one)).toBe(false)
  expect(await other.files.exists('/workspace/project/tests')).toBe(false)
  expect(await one.files.exists('/workspace/project/tests/test_sums.py')).toBe(true)
  expect(await other.files.read('/workspace/project/sums.py')).toContain('a + b')
  expect(await sandbox.files.read('/workspace/project/sums.py')).toContain('a + b')
  expect(await passes(sandbox)).toBe(true)
  await Promise.all([one.close(), other.close()])
  expect((await platform.snapshots.list()).map(({ name }) => name)).toEqual(['as uploaded'])
  expect(readdirSync(join(folder, 'snapshots', 'drafts'))).toEqual([])
})

test('a new sandbox begins where the project was, and its receipt says so', async () => {
  const again = await Sandbox.create({ platform, from: 'as uploaded' })
  const { id } = (await platform.snapshots.list())[0] as { readonly id: string }
  expect(await passes(again)).toBe(false)
  expect(shown(await again.diff({ since: id }))).toEqual([])
  expect((await again.info()).spec.from).toBe(id)
  expect((await again.receipt()).from).toBe(id)
  expect((await again.usage()).runs).toBe(1)
  await again.close()
})
