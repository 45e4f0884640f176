import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeTempFolder, removeTree, sweepTempFolders } from '../../src/sys/temp-folder.js'

describe('a temporary folder', () => {
  it('is for its owner only', async () => {
    const folder = await makeTempFolder('glovebox-test-')
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    await removeTree(folder)
    expect(existsSync(folder)).toBe(false)
  })

  it('is removed with a tree deeper than any path can name', async () => {
    const folder = await makeTempFolder('glovebox-test-')
    const dig = 'for (let depth = 0; depth < 500; depth += 1) { fs.mkdirSync("d".repeat(200)); process.chdir("d".repeat(200)) }'
    expect(spawnSync(process.execPath, ['-e', dig], { cwd: folder }).status).toBe(0)
    await removeTree(folder)
    expect(existsSync(folder)).toBe(false)
  })

  it('is removed without following links, and what they point to stays', async () => {
    const folder = await makeTempFolder('glovebox-test-')
    const other = await makeTempFolder('glovebox-test-')
    writeFileSync(join(other, 'kept'), '')
    mkdirSync(join(folder, 'in'))
    symlinkSync(other, join(folder, 'in', 'link'))
    symlinkSync(join(other, 'kept'), join(folder, 'link'))
    await removeTree(folder)
    expect([existsSync(folder), existsSync(join(other, 'kept'))]).toEqual([false, true])
    await removeTree(other)
  })

  it('that is gone already, or is only a link, is left alone', async () => {
    const folder = await makeTempFolder('glovebox-test-')
    const link = `${folder}-link`
    symlinkSync(folder, link)
    await removeTree(link)
    expect(existsSync(folder)).toBe(true)
    await removeTree(folder)
    await removeTree(folder)
    unlinkSync(link)
  })

  it('of a dead process is swept, of a living one kept', async () => {
    const prefix = `glovebox-sweep${process.pid}-`
    const living = await makeTempFolder(prefix)
    const dead = living.replace(`${prefix}${process.pid}.`, `${prefix}4194305.`)
    mkdirSync(join(dead, 'left'), { recursive: true })
    await sweepTempFolders(prefix)
    expect([existsSync(living), existsSync(dead)]).toEqual([true, false])
    await removeTree(living)
  })
})
