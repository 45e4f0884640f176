/// <reference lib="esnext.disposable" preserve="true" />
import { createPlatform as composePlatform, defaultPlatform, localFiles } from './compose.js'
import { connectPlatform, type ConnectionOptions } from './connect.js'
import type { Platform } from './contract/platform.js'
import type { PlatformSettings } from './contract/platform-settings.js'
import type { LocalFiles } from './contract/transfer.js'
import { Sandbox as AnySandbox, SandboxPool as AnySandboxPool } from './sandbox/index.js'

export { CommandError } from './sandbox/index.js'

export type { BarSeries, Chart, ChartAxis, ChartBox, ChartValue, PointSeries } from './contract/charts.js'
export type {
  Artifact,
  CodeEnding,
  CodeError,
  CodeEvent,
  CodeRequest,
  CodeResult,
  CodeStatus,
  ColumnType,
  ContextInfo,
  ContextRequest,
  ContextState,
  Language,
  PlatformCode,
  PlatformExecution,
  Table,
  TableColumn,
} from './contract/code.js'
export type { Cell, CellChannel, CellRun, CellSpec, CellUsage, CommandRules, Driver, PostureSubject, Probe } from './contract/driver.js'
export { type ErrorCode, SandboxError } from './contract/errors.js'
export type {
  CopyOptions,
  Entry,
  EntryType,
  FileCalls,
  FileEvent,
  FileOptions,
  FilePath,
  ListOptions,
  PlatformFiles,
  ReadOptions,
  RemoveOptions,
  SearchMatch,
  SearchOptions,
  SearchResult,
  WatchOptions,
  WriteOptions,
} from './contract/files.js'
export type { ExpiryAct, PauseOptions, PlatformLife, SandboxEvent } from './contract/lifetimes.js'
export type { LimitName, Limits, LimitsInput } from './contract/limits.js'
export type {
  NetworkApproval,
  NetworkFacts,
  NetworkInput,
  NetworkRecord,
  NetworkSummary,
  NetworkVerdict,
} from './contract/network.js'
export type { CreationOptions, PlatformNetwork, RequestJudge, SummaryOptions } from './contract/platform-network.js'
export type { PlatformSettings } from './contract/platform-settings.js'
export type { Platform, PlatformProcess, SandboxFilter, SandboxInfo, SandboxUsage } from './contract/platform.js'
export type {
  Claim,
  Fresh,
  OneShot,
  OneShotCall,
  OneShotNetwork,
  OneShotPlace,
  PlatformPools,
  PoolInfo,
  PoolInput,
  PoolStatus,
  Released,
} from './contract/pools.js'
export type { Forward, ForwardOptions, PlatformPorts } from './contract/ports.js'
export type { AttachOptions, PlatformProcesses, ProcessInfo, ProcessName, ProcessState } from './contract/processes.js'
export type { Policy, PolicyInput } from './contract/policy.js'
export type { Expectation, Observation, Posture } from './contract/posture.js'
export type { Receipt } from './contract/receipt.js'
export type { Command, Ending, LimitHits, Outcome, OutputEvent, SignalName, TerminalSize, Usage } from './contract/run.js'
export type { Change, ChangeType, ForkOptions, PlatformSnapshots, SinceOptions, SnapshotInfo, TakeOptions } from './contract/snapshots.js'
export type { Mount, RootMode, Spec, SpecInput, Tier, UserName } from './contract/spec.js'
export type {
  AcquireOptions,
  ChildProcessView,
  CodeArtifact,
  CodeOptions,
  CodeRun,
  CodeRunEvent,
  ConnectOptions,
  ContextOptions,
  Contexts,
  CreateOptions,
  Execution,
  ExitEvent,
  InputSource,
  InstallOptions,
  NodeReadable,
  NodeWritable,
  OneShotCodeRun,
  OneShotOptions,
  OneShotRun,
  PlatformOptions,
  PoolCodeOptions,
  PoolOptions,
  PoolRunOptions,
  Process,
  ProcessInput,
  Result,
  Run,
  RunEvent,
  RunNetwork,
  RunOnceOptions,
  RunOptions,
  RunResult,
  ShellCommand,
  ShellResult,
  ShellWord,
  SnapshotShelf,
  SpawnOptions,
  Terminal,
  TerminalOptions,
  DownloadOptions,
  FileContent,
  FileWatch,
  SandboxFiles,
  SandboxNetwork,
  Transferred,
  TransferProgress,
  UploadOptions,
} from './sandbox/index.js'
export type { Skipped } from './contract/transfer.js'

/** A platform on this machine. Nothing is touched before it is used; whoever creates it disposes of it. */
export function createPlatform(settings: PlatformSettings = {}): Platform {
  return composePlatform(settings)
}

export type { ConnectionOptions }

/** Platforms behind servers: `const platform = Glovebox.connect({ url, key })`, then `Sandbox.create({ platform })`. */
export const Glovebox = {
  /** Nothing is asked before it is used; whoever connects disposes of it, which leaves what is on the server as it is. */
  connect(options: ConnectionOptions): Platform {
    return connectPlatform(options)
  },
} as const

/** A sandbox on the default platform, unless another is given. */
export class Sandbox extends AnySandbox {
  protected static override defaultPlatform(): Platform {
    return defaultPlatform()
  }

  protected static override localFiles(): LocalFiles {
    return localFiles
  }
}

/** Sandboxes of the default platform that are kept ready, unless another platform is given. */
export class SandboxPool extends AnySandboxPool {
  protected static override defaultPlatform(): Platform {
    return defaultPlatform()
  }

  protected static override sandboxes(): typeof Sandbox {
    return Sandbox
  }
}
