export type { InputSource } from './input.js'
export type { Process, ProcessInput } from './process.js'
export type { ExitEvent, Run, RunEvent, RunResult } from './run.js'
export { type CreateOptions, type PlatformOptions, type RunOptions, Sandbox, type SpawnOptions } from './sandbox.js'
