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
import { type Levels, onlyFreezes, runControllers } from './cgroup-levels.js'

export interface Freezer {
  /**
   * Resolves when the kernel says that all of it stands still, but for the runs of these names, of which none may fork. Throws SandboxError('busy') when that does
   * not come about; then it goes on. 'unsupported' where the runs cannot be told apart.
   */
  freeze(besides: readonly string[]): Promise<void>
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
  if (legacy) return new LegacyFreezer(legacy, levels)
  const unified = levels.find(({ hierarchy, guest }) => hierarchy.version === 2 && guest.has('cgroup.freeze'))
  return unified && new UnifiedFreezer(unified.guest)
}

class UnifiedFreezer implements Freezer {
  readonly #guest: Group
  #frozen: readonly Group[] = []

  constructor(guest: Group) {
    this.#guest = guest
  }

  /** No guest is in any other group than that of its run, or gets into one. */
  async freeze(besides: readonly string[]): Promise<void> {
    this.#frozen = besides.length === 0 ? [this.#guest] : this.#guest.children().filter(({ name }) => !besides.includes(name))
    this.#state('1')
    await until(
      () => this.#isAll(1),
      () => this.release(),
    )
  }

  async thaw(): Promise<void> {
    this.#state('0')
    await until(
      () => this.#isAll(0),
      () => Promise.resolve(),
    )
  }

  kill(): void {
    this.#guest.kill()
  }

  release(): Promise<void> {
    this.#state('0')
    return Promise.resolve()
  }

  #state(state: '0' | '1'): void {
    for (const group of this.#frozen) if (group.has('cgroup.freeze')) writeIfThere(group, 'cgroup.freeze', state)
  }

  /** What is gone moves no more, and is not held either. */
  #isAll(state: 0 | 1): boolean {
    return this.#frozen.every((group) => (group.keyed('cgroup.events', 'frozen') ?? state) === state)
  }
}

class LegacyFreezer implements Freezer {
  readonly #own: Levels
  readonly #levels: readonly Levels[]
  #frozen: Group | undefined
  #standby: Standby | undefined

  constructor(own: Levels, levels: readonly Levels[]) {
    this.#own = own
    this.#levels = levels
  }

  async freeze(besides: readonly string[]): Promise<void> {
    for (const name of besides) this.#setAside(name)
    const group = besides.length === 0 ? this.#own.cell : this.#own.guest
    this.#frozen = group
    // There before anything is frozen: from then on nothing stays so without an owner.
    this.#standby ??= await standBy(join(group.folder, 'freezer.state'))
    group.write('freezer.state', 'FROZEN')
    await until(
      () => group.read('freezer.state') !== 'FREEZING',
      () => this.release(),
    )
    if (group.read('freezer.state') !== 'FROZEN') throw new SandboxError('busy', 'what was to stand still was let go meanwhile')
  }

  async thaw(): Promise<void> {
    const group = this.#frozen
    // First, so that it cannot thaw what is frozen again after this.
    await this.#dismiss()
    group?.write('freezer.state', thawed)
    await until(
      () => group === undefined || group.read('freezer.state') === thawed,
      () => Promise.resolve(),
    )
  }

  kill(): void {
    thawDead(this.#own.cell)
  }

  async release(): Promise<void> {
    const group = this.#frozen
    if (group?.has('freezer.state') && group.read('freezer.state') !== thawed) group.write('freezer.state', thawed)
    await this.#dismiss()
  }

  /** It stays above the guests for good: the next time that all are to stand still, what is there does too. */
  #setAside(name: string): void {
    const { hierarchy, cell } = this.#own
    const counted = this.#levels.find((level) => runControllers(level.hierarchy).length > 0)
    if (!onlyFreezes(hierarchy) || counted === undefined) throw new SandboxError('unsupported', 'this cell has no cgroups that tell one run from another')
    const members = counted.guest.below(name).read('tasks') ?? ''
    for (const thread of members.split('\n')) if (Number(thread) > 0) writeIfThere(cell, 'tasks', thread)
  }

  async #dismiss(): Promise<void> {
    const standby = this.#standby
    this.#standby = undefined
    await standby?.dismiss()
  }
}

function writeIfThere(group: Group, control: string, value: string): void {
  quietIfGone(() => group.write(control, value))
}

/** Quiet about a group or a process that is gone. */
function quietIfGone(act: () => void): void {
  try {
    act()
  } catch (error) {
    if (!['ENOENT', 'ENODEV', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
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

/** Everything in a group of version 1 and beneath, so that it can end. It does not run before: SIGKILL waits for it. Somebody else may remove it meanwhile. */
export function thawDead(group: Group): void {
  if (!group.has('freezer.state')) return
  quietIfGone(() => group.kill())
  for (const each of [...group.descendants(), group]) quietIfGone(() => each.write('freezer.state', thawed))
}
