/// <reference lib="esnext.disposable" preserve="true" />
export { createPlatform, type PlatformSettings, Sandbox } from './compose.js'
export type { Cell, CellChannel, CellSpec, Driver, Probe } from './contract/driver.js'
export { type ErrorCode, SandboxError } from './contract/errors.js'
export type { LimitName, Limits, LimitsInput } from './contract/limits.js'
export type { Platform, PlatformProcess, SandboxFilter, SandboxInfo } from './contract/platform.js'
export type { Command, Ending, Outcome, OutputEvent, SignalName, Usage } from './contract/run.js'
export type { Spec, SpecInput, Tier, UserName } from './contract/spec.js'
export type {
  CreateOptions,
  ExitEvent,
  InputSource,
  PlatformOptions,
  Process,
  ProcessInput,
  Run,
  RunEvent,
  RunOptions,
  RunResult,
  SpawnOptions,
} from './sandbox/index.js'
