import { describe, expect, test } from 'vitest'
import { leftoversOf, type Subject } from '../../src/conformance/index.js'
import { absenceOf } from './hold.js'
import { noEngineFor, startEngineFor } from '../docker-engine.js'
import { skipGroup } from '../unless.js'
import { createWorld, type DriverName } from './world.js'

const usualTotal = 200
const atOnce = 8

export interface LeakOptions {
  /** Fewer where each takes long. */
  readonly total?: number
}

/** Every fifth is closed under a run, the others after one. */
async function live(subject: Subject, n: number): Promise<void> {
  const sandbox = await subject.open()
  const run = sandbox.run(['sh', '-c', n % 5 === 0 ? 'setsid sleep 30 & sleep 30' : `echo ${n} >file; cat file`])
  if (n % 5 === 0) run.catch(() => undefined)
  else expect(new TextDecoder().decode((await run).stdout)).toBe(`${n}\n`)
  await sandbox.close()
}

export function leakNothing(driver: DriverName, { total = usualTotal }: LeakOptions = {}): void {
  const impossible = noEngineFor(driver)
  describe(driver, () => {
    skipGroup(impossible ?? false)
    test(`${total} sandboxes created and closed leave processes, mounts, cgroups, files and descriptors as they were`, { timeout: 600_000 }, async ({
      skip,
    }) => {
      await using engine = await startEngineFor(driver)
      await using world = await createWorld(engine ? { docker: engine.address } : {})
      const subject = await world.engineSubject(driver)
      const absent = absenceOf(subject)
      if (absent !== undefined) skip(absent)
      for (let n = 0; n < 5; n += 1) await live(subject, n)
      const before = await world.host.snapshot()
      for (let n = 0; n < total; n += atOnce) await Promise.all(Array.from({ length: atOnce }, (_, index) => live(subject, n + index)))
      const differences = async (): Promise<string[][]> => {
        const after = await world.host.snapshot()
        return [leftoversOf(before, after), leftoversOf(after, before)]
      }
      // A socket that was just destroyed gives its descriptor back on a later turn of the loop.
      await expect.poll(differences).toEqual([[], []])
      expect((await engine?.client.call('GET', '/containers/json', { query: { all: '1' } })) ?? []).toEqual([])
    })
  })
}
