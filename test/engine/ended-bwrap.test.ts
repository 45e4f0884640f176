import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { PlatformProcess } from '../../src/contract/platform.js'
import { detectCgroups } from '../../src/sys/cgroups.js'
import { testUnless } from '../unless.js'
import { collect } from './collect.js'
import { openLined } from './lined.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const cgroups = detectCgroups()
const nobodyCounts = 'unavailable' in cgroups && `nobody counts what a program left: ${cgroups.unavailable}`

/** The latest may be in use still, and one that ended a moment ago may be counted by the kernel a little longer. */
const fewAreLeft = 5

async function leftOf(runs: number, start: () => Promise<PlatformProcess>): Promise<number> {
  const programs: WeakRef<PlatformProcess>[] = []
  for (let run = 0; run < runs; run += 1) {
    const program = await start()
    await collect(program)
    await program.ended
    programs.push(new WeakRef(program))
  }
  await sleep(20)
  collectGarbage()
  return programs.filter((program) => program.deref()).length
}

testUnless(nobodyCounts, { timeout: 60_000 })('programs that have ended and left nothing are not kept', async () => {
  await using platform = createPlatform()
  const { id } = await platform.create({ driver: 'bwrap' })
  expect(await leftOf(60, () => platform.start(id, { command: ['true'] }))).toBeLessThan(fewAreLeft)
})

test('nor are those of liners, whatever they left', { timeout: 60_000 }, async () => {
  await using lined = await openLined()
  const command = '(setsid sleep 100 >/dev/null 2>&1 &)'
  expect(await leftOf(30, () => lined.sandbox.startLined({ command }, undefined))).toBeLessThan(fewAreLeft)
})

test('nor are those of which nobody can tell what they left, but for what it takes to end that', { timeout: 60_000 }, async () => {
  await using platform = createPlatform()
  const { id } = await platform.create({ driver: 'fake', minTier: 'none' })
  expect(await leftOf(60, () => platform.start(id, { command: ['true'] }))).toBeLessThan(fewAreLeft)
})
