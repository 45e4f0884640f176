/**
 * Stopping everything in a group at once, and letting it go on.
 *
 * Version 2 does so by a file of each group, and what is frozen there can still be killed. Version 1 has a controller for it, under which a
 * process takes even SIGKILL only when it is let go: so whatever ends frozen processes kills first and thaws then, and because the kernel cannot
 * do that for an owner who was killed himself, a small process stands by which does.
 */
import { spawn } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../contract/errors.js'
import type { Group } from './cgroup-files.js'
import type { Levels } from './cgroup-levels.js'

export interface Freezer {
  /** Resolves when the kernel says that all of it stands still. Throws SandboxError('busy') when that does not come about; then it goes on. */
  freeze(): Promise<void>
  thaw(): Promise<void>
  /** All that may be frozen, none of which runs again. */
  kill(): void
  /** So that what was killed can end; quiet when nothing is frozen, or nothing is left. */
  release(): Promise<void>
}

const patienceMs = 10_000
const thawed = 'THAWED'

/** Undefined where none of a cell's groups can be frozen. */
export function findFreezer(levels: readonly Levels[]): Freezer | undefined {
  const legacy = levels.find(({ hierarchy }) => hierarchy.controllers.includes('freezer'))
  if (legacy) return new LegacyFreezer(legacy.guest)
  const unified = levels.find(({ hierarchy, guest }) => hierarchy.version === 2 && guest.has('cgroup.freeze'))
  return unified && new UnifiedFreezer(unified.guest)
}

class UnifiedFreezer implements Freezer {
  readonly #group: Group

  constructor(group: Group) {
    this.#group = group
  }

  async freeze(): Promise<void> {
    this.#group.write('cgroup.freeze', '1')
    await until(
      () => this.#group.keyed('cgroup.events', 'frozen') === 1,
      () => this.release(),
    )
  }

  async thaw(): Promise<void> {
    this.#group.write('cgroup.freeze', '0')
    await until(
      () => this.#group.keyed('cgroup.events', 'frozen') === 0,
      () => Promise.resolve(),
    )
  }

  kill(): void {
    this.#group.kill()
  }

  release(): Promise<void> {
    if (this.#group.read('cgroup.freeze') === '1') this.#group.write('cgroup.freeze', '0')
    return Promise.resolve()
  }
}

class LegacyFreezer implements Freezer {
  readonly #group: Group
  #standby: Standby | undefined

  constructor(group: Group) {
    this.#group = group
  }

  async freeze(): Promise<void> {
    // There before anything is frozen: from then on nothing stays so without an owner.
    this.#standby ??= await standBy(join(this.#group.folder, 'freezer.state'))
    this.#group.write('freezer.state', 'FROZEN')
    await until(
      () => this.#group.read('freezer.state') === 'FROZEN',
      () => this.release(),
    )
  }

  async thaw(): Promise<void> {
    // First, so that it cannot thaw what is frozen again after this.
    await this.#dismiss()
    this.#group.write('freezer.state', thawed)
    await until(
      () => this.#group.read('freezer.state') === thawed,
      () => Promise.resolve(),
    )
  }

  kill(): void {
    thawDead(this.#group)
  }

  async release(): Promise<void> {
    if (this.#group.has('freezer.state') && this.#group.read('freezer.state') !== thawed) this.#group.write('freezer.state', thawed)
    await this.#dismiss()
  }

  async #dismiss(): Promise<void> {
    const standby = this.#standby
    this.#standby = undefined
    await standby?.dismiss()
  }
}

async function until(isSo: () => boolean, giveUp: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + patienceMs
  for (let waitMs = 1; !isSo(); waitMs = Math.min(waitMs * 2, 50)) {
    if (performance.now() > deadline) {
      await giveUp()
      throw new SandboxError('busy', `the kernel did not stop or let go every process within ${patienceMs} ms`)
    }
    await sleep(waitMs)
  }
}

interface Standby {
  dismiss(): Promise<void>
}

/**
 * `tail` prints the last it has read when its input ends: with the state file as its output and our end of a pipe as its input, it thaws
 * when this process is gone, however that came about.
 */
async function standBy(stateFile: string): Promise<Standby> {
  const state = openSync(stateFile, constants.O_WRONLY)
  try {
    const child = spawn('tail', ['-c', `${thawed.length}`], {
      cwd: '/',
      env: { PATH: '/usr/bin:/bin' },
      stdio: ['pipe', state, 'ignore'],
      // A signal to the terminal's group is not meant for it.
      detached: true,
    })
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', (error) => reject(new SandboxError('unavailable', `tail could not be started: ${error.message}`, { cause: error })))
    })
    child.unref()
    const input = child.stdin as NonNullable<typeof child.stdin> & { unref?(): void }
    input.on('error', () => undefined)
    input.write(thawed)
    input.unref?.()
    return {
      dismiss: async () => {
        child.ref()
        child.kill('SIGKILL')
        await exited
      },
    }
  } finally {
    closeSync(state)
  }
}

/** Everything in a group of version 1, so that it can end. It does not run before: SIGKILL waits for it. */
export function thawDead(group: Group): void {
  if (!group.has('freezer.state')) return
  group.kill()
  group.write('freezer.state', thawed)
}
