/** Programs of Debian's that tests need and no user does: unpacked into a folder, never installed, none of their scripts run. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { SandboxError } from '../src/contract/errors.js'
import { unpackPackage } from '../src/sys/unpack-package.js'
import { checkMachine, fetchPackages } from '../src/templates/build-packages.js'

export interface WantedPackages {
  readonly packages: readonly string[]
  /** What they depend on and the machine has. */
  readonly without: readonly string[]
}

/** Resolves to the reason why they cannot be had on this machine, or false. */
export async function unpackDebian(wanted: WantedPackages, into: string): Promise<string | false> {
  const recipe = { name: wanted.packages.join('-'), summary: '', links: [], env: {}, checks: [], diskBytes: 0, ...wanted }
  try {
    checkMachine()
    mkdirSync(join(into, 'packages'), { recursive: true })
    mkdirSync(join(into, 'root'))
    const found = await fetchPackages({ recipe, folder: join(into, 'packages'), signal: undefined, tell: () => undefined })
    for (const { file } of found) await unpackPackage({ file, into: join(into, 'root'), leftOut: [] })
    return false
  } catch (error) {
    if (error instanceof SandboxError && ['unsupported', 'unavailable'].includes(error.code)) return error.message
    throw error
  }
}
