import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { openAuditTrail } from '../../src/audit/index.js'
import type { Appended } from '../../src/contract/audit.js'
import { SandboxError } from '../../src/contract/errors.js'
import { entryOf, signingWith } from './own-trail.js'

/** A disk of so many KiB, with nothing else on it. Mounting needs root, which the machines that run all tests are. */
function tinyDisk(kib: number) {
  const folder = mkdtempSync(join(tmpdir(), 'gbx-full-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k,mode=0700`, 'tmpfs', folder])
  return {
    folder,
    [Symbol.dispose]: () => {
      execFileSync('umount', ['-l', folder])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const isRoot = process.getuid?.() === 0
const signing = signingWith(generateKeyPairSync('ed25519').privateKey)

describe.skipIf(!isRoot)('a trail on a disk that gets full (root, to mount one)', () => {
  test('refuses what is new, loses nothing it took, and goes on once there is room', async () => {
    using disk = tinyDisk(1024)
    await using trail = await openAuditTrail(join(disk.folder, 'audit.db'), { signing, leastFreeBytes: 0 })
    const begun: Appended[] = []
    let refusal: unknown
    for (let index = 0; index < 3000 && refusal === undefined; index++)
      await trail.append(entryOf(index, { details: { index, text: 'x'.repeat(700) } })).then(
        (appended) => begun.push(appended),
        (error: unknown) => {
          refusal = error
        },
      )
    expect(refusal).toBeInstanceOf(SandboxError)
    expect(refusal).toMatchObject({ code: 'full' })
    expect(begun.length).toBeGreaterThan(50)
    // How something ended that was taken must not be lost; while it waits nothing new is taken.
    const ended = trail.finish(begun[0] as Appended, { outcome: { kind: 'ok' }, details: { text: 'y'.repeat(100_000) } })
    await expect
      .poll(() =>
        trail.append(entryOf(1)).then(
          () => 'taken',
          (error: SandboxError) => error.code,
        ),
      )
      .toBe('full')
    expect(await trail.verify()).toMatchObject({ valid: true, records: begun.length })
    execFileSync('mount', ['-o', 'remount,size=8m', disk.folder])
    expect((await ended).number).toBe(begun.length + 1)
    await expect
      .poll(() =>
        trail.append(entryOf(1)).then(
          () => 'taken',
          (error: SandboxError) => error.code,
        ),
      )
      .toBe('taken')
    expect(await trail.verify()).toMatchObject({ valid: true, records: begun.length + 2 })
  })

  test('keeps room for how what is under way ends', async () => {
    using disk = tinyDisk(4096)
    await using trail = await openAuditTrail(join(disk.folder, 'audit.db'), { signing, leastFreeBytes: 2 * 2 ** 20 })
    const begun = await trail.append(entryOf(1))
    writeFileSync(join(disk.folder, 'filler'), Buffer.alloc(3 * 2 ** 20))
    await expect
      .poll(() =>
        trail.append(entryOf(2)).then(
          () => 'taken',
          (error: SandboxError) => `${error.code} ${error.hint}`,
        ),
      )
      .toBe('full glovebox audit prune --before 90d')
    await trail.finish(begun, { outcome: { kind: 'ok' } })
    await trail.tell(entryOf(3))
    expect(await trail.verify()).toMatchObject({ valid: true })
  })
})
