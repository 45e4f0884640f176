import { join } from 'node:path'
import type { EgressDoor } from '../contract/egress.js'
import { writeCertificates } from './certificates.js'
import { createEgressDoor, type EgressOptions } from './index.js'

/** Where files of packages are kept, below what else can be built again. */
export const packagesName = 'packages'

interface SourceOptions extends EgressOptions {
  /** Where what cells are handed is kept. */
  readonly folder: () => string
}

/** The ways out of a platform's sandboxes, with what their cells are to trust. */
export function createEgressSource({ folder, ...options }: SourceOptions): EgressDoor & { certificates(): Promise<string> } {
  const door = createEgressDoor({ packages: { folder: () => join(folder(), packagesName) }, ...options })
  let written: string | undefined
  return {
    open: (order) => door.open(order),
    // eslint-disable-next-line @typescript-eslint/require-await -- what it throws is a rejection to whoever opens a cell
    certificates: async () => (written ??= writeCertificates(folder(), { certificate: door.certificate() }, options.trusted)),
    close: () => door.close(),
  }
}
