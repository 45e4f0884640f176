import { statSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { AuditRecord } from '../../src/contract/audit.js'
import { verifyExport } from '../../src/audit/index.js'
import { entryOf, ownTrailFolder, signingWith } from './own-trail.js'
import { generateKeyPairSync } from 'node:crypto'

describe('an audit trail', () => {
  test('has what was appended, in order, each with the hash of the one before it', async () => {
    using folder = ownTrailFolder()
    await using trail = await folder.open()
    const appended = await Promise.all(Array.from({ length: 50 }, (_, index) => trail.append(entryOf(index))))
    expect(appended.map(({ number }) => number)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1))
    const { items } = await trail.list({}, { from: 'oldest' })
    expect(items.map(({ details }) => details?.index)).toEqual(Array.from({ length: 50 }, (_, index) => index))
    expect(items.slice(1).map(({ previous }) => previous)).toEqual(items.slice(0, -1).map(({ hash }) => hash))
    const found = await trail.verify()
    expect(found).toMatchObject({ valid: true, records: 50, trusted: true, head: { number: 50, hash: items.at(-1)?.hash } })
  })

  test('is only its owner’s to read', async () => {
    using folder = ownTrailFolder()
    await using trail = await folder.open()
    await trail.append(entryOf(1))
    for (const name of ['', '-wal', '-shm']) expect(statSync(folder.path + name).mode & 0o777).toBe(0o600)
  })

  test('tells how an act ended by a second record that names the first', async () => {
    using folder = ownTrailFolder()
    await using trail = await folder.open()
    const begun = await trail.append(entryOf(7, { agent: 'a', request: 'r' }))
    await trail.finish(begun, { outcome: { kind: 'error', code: 'broken', message: 'the cell ended' } })
    const { items } = await trail.list()
    const { number, at, previous, hash, ...ended } = items[0] as AuditRecord
    expect([number, previous]).toEqual([2, begun.hash])
    expect(at).toMatch(/^\d{4}-/)
    expect(hash).toMatch(/^[0-9a-f]{64}$/)
    const { details, ...same } = begun.entry
    expect(details).toEqual({ index: 7 })
    expect(ended).toEqual({ ...same, of: 1, outcome: { kind: 'error', code: 'broken', message: 'the cell ended' } })
  })

  test('pages through what a filter leaves, from both ends, without a gap', async () => {
    using folder = ownTrailFolder()
    await using trail = await folder.open()
    await Promise.all(Array.from({ length: 45 }, (_, index) => trail.append(entryOf(index))))
    const seen: number[] = []
    for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
      const { items, next } = await trail.list({ tenant: 'odd' }, { limit: 5, from: 'oldest', ...(cursor !== undefined && { cursor }) })
      seen.push(...items.map(({ details }) => details?.index as number))
      cursor = next
    }
    expect(seen).toEqual(Array.from({ length: 22 }, (_, index) => index * 2 + 1))
    expect((await trail.list({ tenant: 'nobody' })).items).toEqual([])
    await expect(trail.list({ tenent: 'x' } as object)).rejects.toMatchObject({ code: 'invalid' })
    await expect(trail.list({}, { cursor: '1 OR 1' })).rejects.toMatchObject({ code: 'invalid' })
  })

  test('can be followed, also from another connection', async () => {
    using folder = ownTrailFolder()
    await using trail = await folder.open()
    await using other = await folder.open()
    await trail.append(entryOf(1))
    const seen: unknown[] = []
    const following = (async () => {
      for await (const { details } of other.tail({ tenant: 'odd' }, { last: 5 })) {
        seen.push(details?.index)
        if (seen.length === 3) return
      }
    })()
    await trail.append(entryOf(2))
    await trail.append(entryOf(3))
    await other.append(entryOf(5))
    await following
    expect(seen).toEqual([1, 3, 5])
  })

  test('is verified as it was exported, with nothing but the public key', async () => {
    using folder = ownTrailFolder()
    await using trail = await folder.open()
    await Promise.all(Array.from({ length: 12 }, (_, index) => trail.append(entryOf(index))))
    const lines: string[] = []
    for await (const line of trail.export()) lines.push(line.trimEnd())
    const verify = (some: readonly string[], problemOf = folder.signing.problemOf) => verifyExport({ lines: stream(some), problemOf, trusted: true })
    expect(await verify(lines)).toMatchObject({ valid: true, records: 12, trusted: true })
    expect(await verify([...lines.slice(0, 4), ...lines.slice(5)])).toMatchObject({ valid: false, number: 5, why: 'it is missing' })
    expect(await verify(lines.slice(0, -1))).toMatchObject({ valid: false, number: 12 })
    expect(await verify(lines.map((line) => line.replace('"index":6', '"index":60')))).toMatchObject({ valid: false, number: 7 })
    const stranger = signingWith(generateKeyPairSync('ed25519').privateKey)
    expect(await verify(lines, stranger.problemOf)).toMatchObject({ valid: false })
  })

  test('refuses a head that was kept elsewhere once something before it was taken back', async () => {
    using folder = ownTrailFolder()
    await using trail = await folder.open()
    await trail.append(entryOf(1))
    const anchor = await trail.head()
    expect(anchor).toMatchObject({ number: 1 })
    await trail.append(entryOf(2))
    expect(await trail.verify({ anchor })).toMatchObject({ valid: true })
    const ahead = folder.signing.sign({ schema: 'glovebox-audit-head/1' as const, number: 9, hash: 'a'.repeat(64), at: new Date().toISOString() })
    expect(await trail.verify({ anchor: ahead })).toMatchObject({ valid: false, number: 3 })
    const other = folder.signing.sign({ schema: 'glovebox-audit-head/1' as const, number: 1, hash: 'a'.repeat(64), at: new Date().toISOString() })
    expect(await trail.verify({ anchor: other })).toMatchObject({ valid: false, number: 1 })
  })

  test('tells when a record would survive this process, before it is on the disk: whoever else reads the trail then finds it', async () => {
    using folder = ownTrailFolder()
    await using trail = await folder.open()
    await using other = await folder.open()
    const seen: unknown[] = []
    let finding: Promise<unknown> = Promise.resolve()
    const appending = trail.append(entryOf(1), {
      onWritten: () => {
        seen.push('written')
        finding = other.list({}, { limit: 1 }).then(({ items }) => items[0]?.number)
      },
    })
    const { number } = await appending.finally(() => seen.push('on the disk'))
    expect(seen).toEqual(['written', 'on the disk'])
    expect(await finding).toBe(number)
  })

  test('writes what is asked for at once together', async () => {
    using folder = ownTrailFolder()
    await using trail = await folder.open()
    await trail.append(entryOf(0))
    const started = performance.now()
    await Promise.all(Array.from({ length: 2000 }, (_, index) => trail.append(entryOf(index))))
    // One by one, each with a wait for the disk of its own, it would be many seconds on most machines.
    expect(performance.now() - started).toBeLessThan(3000)
    expect((await trail.head()).number).toBe(2001)
  })
})

async function* stream(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines
}
