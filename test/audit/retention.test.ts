import Database from 'libsql'
import { describe, expect, test } from 'vitest'
import { verifyExport } from '../../src/audit/index.js'
import { entryOf, ownTrailFolder } from './own-trail.js'

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5))

async function pruned(folder: ReturnType<typeof ownTrailFolder>) {
  const trail = await folder.open()
  for (let index = 0; index < 10; index++) await trail.append(entryOf(index))
  await pause()
  const before = new Date().toISOString()
  for (let index = 10; index < 15; index++) await trail.append(entryOf(index))
  return { trail, before, removed: await trail.prune(before, { actor: 'local' }) }
}

describe('retention', () => {
  test('takes away what is older, and the chain that is left still proves itself', async () => {
    using folder = ownTrailFolder()
    const { trail, removed } = await pruned(folder)
    await using _ = trail
    expect(removed).toBe(10)
    const { items } = await trail.list({}, { from: 'oldest' })
    expect(items.map(({ number, act }) => `${number} ${act}`)).toEqual([
      ...[11, 12, 13, 14, 15].map((number) => `${number} run.start`),
      '16 audit.prune',
      '17 audit.prune',
    ])
    expect(items.at(-2)?.details).toMatchObject({ number: 10, hash: items[0]?.previous })
    expect(await trail.verify()).toMatchObject({ valid: true, records: 7, checkpoint: { number: 10, hash: items[0]?.previous } })
    await trail.append(entryOf(20))
    const lines: string[] = []
    for await (const line of trail.export()) lines.push(line.trimEnd())
    const source = (async function* () {
      yield* lines
    })()
    expect(await verifyExport({ lines: source, problemOf: folder.signing.problemOf, trusted: true })).toMatchObject({
      valid: true,
      records: 8,
      checkpoint: { number: 10 },
    })
  })

  test('can be done again, and when nothing is older does nothing', async () => {
    using folder = ownTrailFolder()
    const { trail } = await pruned(folder)
    await using _ = trail
    expect(await trail.prune('2020-01-01', { actor: 'local' })).toBe(0)
    await pause()
    expect(await trail.prune(new Date().toISOString(), { actor: 'local' })).toBe(7)
    expect((await trail.list()).items.map(({ act }) => act)).toEqual(['audit.prune', 'audit.prune'])
    expect(await trail.verify()).toMatchObject({ valid: true, records: 2 })
    expect((await trail.append(entryOf(1))).number).toBe(20)
  })

  test('does not let more be taken away than was signed for', async () => {
    using folder = ownTrailFolder()
    const { trail } = await pruned(folder)
    await trail[Symbol.asyncDispose]()
    const database = new Database(folder.path)
    database.exec('DELETE FROM records WHERE number = 11')
    database.close()
    await using again = await folder.open()
    expect(await again.verify()).toMatchObject({ valid: false, number: 11, why: 'it is missing' })
  })

  test('does not take the checkpoint’s word without its signature', async () => {
    using folder = ownTrailFolder()
    const { trail } = await pruned(folder)
    await trail[Symbol.asyncDispose]()
    const database = new Database(folder.path)
    const { text } = database.prepare("SELECT text FROM marks WHERE name = 'checkpoint'").get() as { text: string }
    const next = JSON.parse((database.prepare('SELECT text FROM records WHERE number = 11').get() as { text: string }).text) as { hash: string }
    const forged = { ...(JSON.parse(text) as object), number: 11, hash: next.hash }
    database.prepare("UPDATE marks SET text = ? WHERE name = 'checkpoint'").run(JSON.stringify(forged))
    database.exec('DELETE FROM records WHERE number = 11')
    database.close()
    await using again = await folder.open()
    expect(await again.verify()).toMatchObject({ valid: false, number: 11, why: expect.stringContaining('signature') as string })
  })

  test('takes nothing away from a chain that is not as it was written', async () => {
    using folder = ownTrailFolder()
    const { trail, before } = await pruned(folder)
    await trail[Symbol.asyncDispose]()
    const database = new Database(folder.path)
    database.exec(`UPDATE records SET text = replace(text, '"index":12', '"index":99') WHERE number = 13`)
    database.close()
    await using again = await folder.open()
    await expect(again.prune(new Date().toISOString(), { actor: 'local' })).rejects.toMatchObject({ code: 'conflict' })
    expect(before).toMatch(/^\d/)
  })
})
