export { Context } from './context.js'
export type { Timers } from './event-order.js'
export type { ArtifactWatch } from './execution.js'
export { type Runtime, speaks } from './runtime.js'
