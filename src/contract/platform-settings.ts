import type { Driver } from './driver.js'
import type { PolicyInput, PresetName } from './policy.js'

export interface PlatformBounds {
  /** Sandboxes at once, those being created included. */
  readonly maxSandboxes: number
  /** Programs at once in one sandbox. The warden takes no more than 1,024. */
  readonly maxRuns: number
  /** A cell that takes longer to open, or a warden that takes longer to start or kill a program, is given up. */
  readonly answerMs: number
  /** A sandbox that stays paused for longer is closed. */
  readonly maxPausedMs: number
}

export interface PlatformSettings {
  /** The drivers to choose from; all that there are when not given. `fake`, which isolates nothing, is used only for a spec that names it and accepts tier `none`. */
  readonly drivers?: readonly Driver[]
  /** Where what can be built again is kept, instead of the usual place. */
  readonly cacheDir?: string
  /** Where snapshots are kept, instead of the usual place: a folder that only its owner can write to. */
  readonly snapshotDir?: string
  /** What no sandbox of this platform may exceed, and what it gets where it says nothing. */
  readonly policy?: PresetName | PolicyInput
  readonly bounds?: Partial<PlatformBounds>
}
