import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openSqlite } from '../../src/sys/sqlite.js'
import { startScript } from './run-script.js'

const schema = 'CREATE TABLE IF NOT EXISTS things (name TEXT PRIMARY KEY, size INTEGER) STRICT'
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'glovebox-sqlite-test-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('a database', () => {
  test('is its owner’s alone, from its first byte', async () => {
    const database = await openSqlite(join(folder, 'a.db'), { schema })
    await database.write(() => database.run('INSERT INTO things VALUES (?, ?)', 'a', 1))
    for (const name of ['a.db', 'a.db-wal', 'a.db-shm']) expect([name, statSync(join(folder, name)).mode & 0o777]).toEqual([name, 0o600])
    database.close()
  })

  test('that others can read, that is a link, or that is none, is refused with the way on', async () => {
    const path = join(folder, 'a.db')
    ;(await openSqlite(path, { schema })).close()
    chmodSync(path, 0o644)
    await expect(openSqlite(path, { schema })).rejects.toMatchObject({ code: 'unavailable', hint: `chmod 600 ${path}` })
    symlinkSync(path, join(folder, 'link.db'))
    await expect(openSqlite(join(folder, 'link.db'), { schema })).rejects.toMatchObject({ code: 'unavailable' })
    writeFileSync(join(folder, 'b.db'), 'this is no database, whatever it is called; '.repeat(100), { mode: 0o600 })
    await expect(openSqlite(join(folder, 'b.db'), { schema })).rejects.toMatchObject({ code: 'unavailable' })
    await expect(openSqlite(join(folder, 'none', 'c.db'), { schema })).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('takes all of a transaction or nothing', async () => {
    const database = await openSqlite(join(folder, 'a.db'), { schema })
    const half = database.write(() => {
      database.run('INSERT INTO things VALUES (?, ?)', 'a', 1)
      database.run('INSERT INTO things VALUES (?, ?)', 'a', 2)
    })
    await expect(half).rejects.toMatchObject({ code: 'internal' })
    expect(database.all('SELECT * FROM things')).toEqual([])
    database.close()
  })

  test('waits for another connection that writes, without holding up this process', async () => {
    const [one, other] = [await openSqlite(join(folder, 'a.db'), { schema }), await openSqlite(join(folder, 'a.db'), { schema })]
    one.run('BEGIN IMMEDIATE')
    const written = other.write(() => other.run('INSERT INTO things VALUES (?, ?)', 'b', 2))
    let ticks = 0
    const ticking = setInterval(() => ticks++, 10)
    await new Promise((resolve) => setTimeout(resolve, 600))
    one.run('COMMIT')
    await written
    clearInterval(ticking)
    expect(ticks).toBeGreaterThan(3)
    expect(one.get('SELECT size FROM things WHERE name = ?', 'b')).toMatchObject({ size: 2 })
    one.close()
    other.close()
  })

  test('is synced where its commits are: in the log beside it', async () => {
    const path = join(folder, 'a.db')
    const database = await openSqlite(path, { schema })
    await database.write(() => database.run('INSERT INTO things VALUES (?, ?)', 'a-name-to-be-found', 1))
    await database.sync()
    expect(readFileSync(`${path}-wal`, 'latin1')).toContain('a-name-to-be-found')
    database.close()
  })

  test('is unsupported, in words and with the way on, where libsql has no program', async () => {
    const hook = join(folder, 'hook.cjs')
    writeFileSync(
      hook,
      "const m = require('node:module'); const load = m._load; m._load = function (name, ...rest) { if (name.startsWith('@libsql/')) throw new Error('Cannot find module ' + name); return load.call(this, name, ...rest) }",
    )
    const program = new URL('../audit/programs/open-without-program.ts', import.meta.url)
    const control = await startScript(program, [join(folder, 'a.db')])
    expect((await control.ended).stdout).toBe('opened\n')
    const { ended } = await startScript(program, [join(folder, 'b.db')], ['env', `NODE_OPTIONS=--require=${hook}`])
    expect(JSON.parse((await ended).stdout)).toEqual({ code: 'unsupported', message: expect.stringContaining('libsql') as string, hint: 'npm install libsql' })
  })
})
