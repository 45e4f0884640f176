import { generateKeyPairSync } from 'node:crypto'
import Database from 'libsql'
import { describe, expect, test } from 'vitest'
import { linkAfter } from '../../src/audit/chain.js'
import type { AuditRecord } from '../../src/contract/audit.js'
import { canonicalJson } from '../../src/contract/canonical-json.js'
import { entryOf, ownTrailFolder, signingWith } from './own-trail.js'

type Raw = InstanceType<typeof Database>
type Folder = ReturnType<typeof ownTrailFolder>

const count = 30

const textOf = (database: Raw, number: number): string => (database.prepare('SELECT text FROM records WHERE number = ?').get(number) as { text: string }).text
const setText = (database: Raw, number: number, text: string): void => void database.prepare('UPDATE records SET text = ? WHERE number = ?').run(text, number)
const headOf = (database: Raw): string => (database.prepare("SELECT text FROM marks WHERE name = 'head'").get() as { text: string }).text
const setHead = (database: Raw, text: string): void => void database.prepare("UPDATE marks SET text = ? WHERE name = 'head'").run(text)

interface Tampering {
  readonly name: string
  readonly bad: number
  tamper(database: Raw, folder: Folder): void
}

/** As whoever can write the file but has no key could do it. */
const tamperings: readonly Tampering[] = [
  { name: 'a flipped byte', bad: 7, tamper: (database) => setText(database, 7, textOf(database, 7).replace('"index":6', '"index":9')) },
  {
    name: 'a flipped bit in a hash',
    bad: 12,
    tamper: (database) =>
      setText(
        database,
        12,
        textOf(database, 12).replace(/"hash":"(.)/, (_, digit: string) => `"hash":"${digit === '0' ? '1' : '0'}`),
      ),
  },
  { name: 'white space', bad: 3, tamper: (database) => setText(database, 3, `${textOf(database, 3)} `) },
  { name: 'a member more', bad: 4, tamper: (database) => setText(database, 4, textOf(database, 4).replace('{"act"', '{"aaa":1,"act"')) },
  { name: 'no JSON', bad: 5, tamper: (database) => setText(database, 5, 'gone') },
  { name: 'a removed row', bad: 11, tamper: (database) => database.exec('DELETE FROM records WHERE number = 11') },
  { name: 'the first row removed', bad: 1, tamper: (database) => database.exec('DELETE FROM records WHERE number = 1') },
  {
    name: 'a removed row, the rest moved up',
    bad: 11,
    tamper: (database) => {
      database.exec('DELETE FROM records WHERE number = 11')
      for (let number = 12; number <= count; number++) database.exec(`UPDATE records SET number = ${number - 1} WHERE number = ${number}`)
    },
  },
  {
    name: 'two rows that changed places',
    bad: 8,
    tamper: (database) => {
      const [one, other] = [textOf(database, 8), textOf(database, 9)]
      setText(database, 8, other)
      setText(database, 9, one)
    },
  },
  { name: 'a tail cut off', bad: 26, tamper: (database) => database.exec('DELETE FROM records WHERE number > 25') },
  { name: 'everything removed but the head', bad: 1, tamper: (database) => database.exec('DELETE FROM records') },
  { name: 'a head that is gone', bad: count, tamper: (database) => database.exec('DELETE FROM marks') },
  {
    name: 'a head by another key',
    bad: count,
    tamper: (database) => {
      const { signature: _, ...unsigned } = JSON.parse(headOf(database)) as { signature: unknown }
      setHead(database, JSON.stringify(signingWith(generateKeyPairSync('ed25519').privateKey).sign(unsigned)))
    },
  },
  { name: 'a head with another number', bad: count, tamper: (database) => setHead(database, headOf(database).replace(`"number":${count}`, '"number":25')) },
  {
    name: 'a record changed, and all after it hashed anew',
    bad: count,
    tamper: (database) => {
      let end = { number: 19, hash: (JSON.parse(textOf(database, 19)) as AuditRecord).hash }
      for (let number = 20; number <= count; number++) {
        const { number: _number, at, previous: _previous, hash: _hash, ...entry } = JSON.parse(textOf(database, number)) as AuditRecord
        const link = linkAfter(end, number === 20 ? { ...entry, actor: 'somebody-else' } : entry, at)
        database.prepare('UPDATE records SET text = ?, actor = ? WHERE number = ?').run(link.text, link.record.actor, number)
        end = link.record
      }
    },
  },
  { name: 'a record filed under another tenant', bad: 14, tamper: (database) => database.exec("UPDATE records SET tenant = 'nobody' WHERE number = 14") },
  {
    name: 'a record added behind the head',
    bad: count + 1,
    tamper: (database) => {
      const last = JSON.parse(textOf(database, count)) as AuditRecord
      const { record, text } = linkAfter(last, entryOf(99), last.at)
      const values = [record.number, text, record.at, record.act, record.actor, record.tenant ?? null, null, record.sandbox ?? null, null]
      database.prepare('INSERT INTO records (number, text, at, act, actor, tenant, agent, sandbox, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)').run(...values)
    },
  },
]

async function filled(folder: Folder): Promise<void> {
  await using trail = await folder.open()
  for (let index = 0; index < count; index++) await trail.append(entryOf(index))
}

function tampered(folder: Folder, tamper: Tampering['tamper']): void {
  const database = new Database(folder.path)
  tamper(database, folder)
  database.close()
}

describe('a trail that somebody wrote to without the key', () => {
  test('control: untouched, it verifies', async () => {
    using folder = ownTrailFolder()
    await filled(folder)
    tampered(folder, (database) => database.exec('CREATE TABLE strange (x)'))
    await using trail = await folder.open()
    expect(await trail.verify()).toMatchObject({ valid: true, records: count })
  })

  test.each(tamperings)('does not verify: $name', async ({ bad, tamper }) => {
    using folder = ownTrailFolder()
    await filled(folder)
    tampered(folder, tamper)
    await using trail = await folder.open()
    const found = await trail.verify()
    expect(found).toEqual({ valid: false, number: bad, why: expect.any(String) as string })
    if (found.valid) return
    expect(found.why.length).toBeGreaterThan(5)
  })

  test.each(['a tail cut off', 'everything removed but the head', 'a head that is gone', 'a head by another key', 'a record added behind the head'])(
    'takes nothing new, which would hide it: %s',
    async (name) => {
      using folder = ownTrailFolder()
      await filled(folder)
      tampered(folder, tamperings.find((each) => each.name === name)?.tamper ?? (() => undefined))
      await using trail = await folder.open()
      await expect(trail.append(entryOf(1))).rejects.toMatchObject({ code: 'unavailable', hint: 'glovebox audit verify' })
    },
  )

  test('is noticed to have been taken back by the process that wrote more, and by whoever kept a head', async () => {
    using folder = ownTrailFolder()
    await filled(folder)
    await using trail = await folder.open()
    await trail.append(entryOf(1))
    const anchor = await trail.head()
    tampered(folder, (database) => {
      database.exec(`DELETE FROM records WHERE number > 10`)
      const { hash } = JSON.parse(textOf(database, 10)) as AuditRecord
      // The worst case: a head of then, which was really signed.
      setHead(database, JSON.stringify(folder.signing.sign({ schema: 'glovebox-audit-head/1', number: 10, hash, at: new Date().toISOString() })))
    })
    await expect(trail.append(entryOf(2))).rejects.toMatchObject({ code: 'unavailable' })
    expect(await trail.verify()).toMatchObject({ valid: true, records: 10 })
    expect(await trail.verify({ anchor })).toMatchObject({ valid: false, number: 11 })
  })
})

test('a record is one text: its canonical form', async () => {
  using folder = ownTrailFolder()
  await using trail = await folder.open()
  await trail.append(entryOf(1, { details: { b: 1, a: [true, null, 'é\u2028'], z: { y: 1, x: 2 } } }))
  const { items } = await trail.list()
  const database = new Database(folder.path)
  expect(textOf(database, 1)).toBe(canonicalJson(items[0]))
  database.close()
})
