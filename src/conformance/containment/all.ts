import type { ContainmentCase } from './containment.js'
import { filesystemContainment } from './filesystem.js'
import { kernelContainment } from './kernel.js'
import { knownContainment } from './known.js'

/** What an installation is attacked with, in the order in which it is told. */
export const containmentCases: readonly ContainmentCase[] = [...knownContainment, ...filesystemContainment, ...kernelContainment]
