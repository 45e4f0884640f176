import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startScript } from '../sys/run-script.js'
import { ownTrailFolder } from './own-trail.js'

const program = new URL('programs/append-for-ever.ts', import.meta.url)

function keyIn(folder: ReturnType<typeof ownTrailFolder>): string {
  const path = join(folder.folder, 'key.pem')
  writeFileSync(path, folder.privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  return path
}

/** What a process said is on the disk: number and hash of each. */
function saidIn(stdout: string): [number, string][] {
  const lines = stdout.split('\n').filter((line) => /^\d+ [0-9a-f]{64}$/.test(line))
  return lines.map((line) => [Number(line.split(' ')[0]), line.split(' ')[1] ?? ''])
}

test('a process that is killed at any moment leaves a chain that verifies, with everything that it was told is written', async () => {
  using folder = ownTrailFolder()
  const key = keyIn(folder)
  const said = new Map<number, string>()
  for (let round = 0; round < 20; round++) {
    const { child, ended } = await startScript(program, [folder.path, key, `round-${round}`])
    child.stdout?.once('data', () => void sleep(Math.random() * 60).then(() => child.kill('SIGKILL')))
    const { signal, stdout, stderr } = await ended
    expect([signal, stderr]).toEqual(['SIGKILL', ''])
    for (const [number, hash] of saidIn(stdout)) said.set(number, hash)
    await using trail = await folder.open()
    expect(await trail.verify()).toMatchObject({ valid: true })
  }
  expect(said.size).toBeGreaterThan(20)
  await using trail = await folder.open()
  const found = new Map<number, string>()
  for await (const line of trail.export()) {
    const { record } = JSON.parse(line) as { readonly record?: { readonly number: number; readonly hash: string } }
    if (record) found.set(record.number, record.hash)
  }
  expect([...said].filter(([number, hash]) => found.get(number) !== hash)).toEqual([])
})

test('two processes that append to one trail at once make one chain', async () => {
  using folder = ownTrailFolder()
  const key = keyIn(folder)
  const both = await Promise.all(['a', 'b'].map((name) => startScript(program, [folder.path, key, name, '300'])))
  const said = await Promise.all(both.map(async ({ ended }) => ended))
  expect(said.map(({ code, stderr }) => [code, stderr])).toEqual([
    [0, ''],
    [0, ''],
  ])
  const numbers = said.flatMap(({ stdout }) => saidIn(stdout).map(([number]) => number))
  expect(new Set(numbers).size).toBe(600)
  await using trail = await folder.open()
  expect(await trail.verify()).toMatchObject({ valid: true, records: 1200 })
  for (const name of ['a', 'b']) expect((await trail.list({ actor: name }, { limit: 1000 })).items).toHaveLength(600)
})
