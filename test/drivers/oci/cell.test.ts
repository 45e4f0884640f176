import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { programPath } from '../../../src/cell/facts.js'
import { createOciDriver } from '../../../src/drivers/oci/driver.js'
import { type RuntimeName, runtimeNames } from '../../../src/drivers/oci/runtimes.js'
import { statePlace } from '../../../src/sys/places.js'
import { startScript } from '../../sys/run-script.js'
import { testUnless } from '../../unless.js'
import { openGuest } from '../bwrap/open-guest.js'

const isRoot = process.getuid?.() === 0

function lacking(name: RuntimeName): string | false {
  return programPath(name) === undefined && `${name} is not installed`
}

function below(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Folders of cgroups and bundles that bear an owner's name. */
function leftOf(owner: string): string[] {
  const groups = (folder: string): string[] => below(folder).flatMap((name) => (name.includes(owner) ? [join(folder, name)] : groups(join(folder, name))))
  const bundles = below(join(statePlace(), 'bundles')).filter((name) => name.includes(owner))
  return [...groups('/sys/fs/cgroup'), ...bundles]
}

describe.each(runtimeNames)('%s', (name) => {
  testUnless(lacking(name), { timeout: 60_000 })('what a killed engine left is known by its bundle, and cleared away by the next', async () => {
    const script = await startScript(new URL('./programs/hold-container.ts', import.meta.url), [name])
    const { owner } = JSON.parse(await script.firstLine) as { owner: string }
    expect(leftOf(owner).length).toBeGreaterThan(isRoot ? 1 : 0)
    script.child.kill('SIGKILL')
    await script.ended
    const sweep = async (): Promise<string[]> => {
      await using guest = await openGuest({ driver: createOciDriver(name) })
      expect(await guest.sh('echo here')).toBe('here\n')
      return leftOf(owner)
    }
    await expect.poll(sweep, { timeout: 20_000, interval: 200 }).toEqual([])
  })

  testUnless(lacking(name))('the first process has no right but over its own namespaces, and no descriptor that the runtime left', async () => {
    await using guest = await openGuest({ driver: createOciDriver(name) })
    expect(await guest.sh('cat /proc/1/comm; ls /proc/self/fd | wc -l; ls /sys 2>&1 | wc -l; cat /proc/self/uid_map | wc -l')).toBe('warden\n4\n1\n1\n')
  })
})
