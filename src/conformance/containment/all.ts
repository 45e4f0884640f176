import { advisoryContainment } from './advisories.js'
import { fileAdvisories } from './advisories-files.js'
import type { ContainmentCase } from './containment.js'
import { filesystemContainment } from './filesystem.js'
import { kernelContainment } from './kernel.js'
import { knownContainment } from './known.js'
import { networkContainment } from './network.js'
import { postureContainment } from './posture.js'
import { proberContainment } from './prober.js'
import { processContainment } from './processes.js'
import { tenantContainment } from './tenants.js'

/** What an installation is attacked with, in the order in which it is told. */
export const containmentCases: readonly ContainmentCase[] = [
  ...knownContainment,
  ...filesystemContainment,
  ...kernelContainment,
  ...proberContainment,
  ...processContainment,
  ...networkContainment,
  ...tenantContainment,
  ...advisoryContainment,
  ...fileAdvisories,
  ...postureContainment,
]
