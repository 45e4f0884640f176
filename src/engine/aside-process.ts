/**
 * A kept program with an aside, as its one owner in the engine holds it. It passes everything that other programs pass, and is a process of its sandbox like
 * them. What differs: its stdin is /dev/null, what is written to it is its descriptor 3, and its descriptor 4 is a stream beside stdout and stderr.
 *
 * What it prints counts as output, what it says aside does not: that is talk between it and its owner.
 */
import type { PlatformProcess } from '../contract/platform.js'
import type { Ending, OutputEvent, SignalName } from '../contract/run.js'
import type { KeptActivity } from './kept-process.js'
import type { RunningProgram } from './running-program.js'
import type { UnstartedProgram } from './unstarted-program.js'
import { noPieces, watched } from './watched-pieces.js'

export interface AsideProcess extends Omit<PlatformProcess, 'resize'> {
  /** stdout and stderr. One consumer; not reading it holds them back, but not the aside. Leaving it early drops the rest. */
  readonly output: AsyncIterable<OutputEvent>
  /** What it writes to its descriptor 4, in pieces that are cut anywhere. One consumer; not reading it holds that back, but not stdout or stderr. Leaving it early drops the rest. */
  readonly aside: AsyncIterable<Uint8Array>
  /** To its descriptor 3. Resolves when the bytes are accepted; one that closed it swallows them quietly, 'conflict' when the program ended before. */
  write(bytes: Uint8Array): Promise<void>
  /** Settles when the program has ended, and its output and its aside are read to the end or left. Rejects only when the sandbox fails. */
  readonly ended: Promise<Ending>
}

/** What is said to it and by it makes it one that is of use to someone. */
export class OwnedProcess implements AsideProcess {
  readonly pid: number
  readonly output: AsyncIterable<OutputEvent>
  readonly aside: AsyncIterable<Uint8Array>
  readonly ended: Promise<Ending>
  readonly #program: RunningProgram
  readonly #activity: KeptActivity

  constructor(program: RunningProgram, activity: KeptActivity) {
    this.#program = program
    this.#activity = activity
    this.pid = program.pid
    this.ended = program.ended
    const onPiece = (): void => activity.touch()
    this.output = watched(program.output, { onPiece })
    this.aside = watched(program.aside, { onPiece })
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#activity.touch()
    await this.#program.write(bytes)
  }

  async endInput(): Promise<void> {
    this.#activity.touch()
    await this.#program.endInput()
  }

  async signal(name: SignalName): Promise<void> {
    await this.#program.signal(name)
  }

  async kill(reason?: string): Promise<void> {
    await this.#program.kill(reason)
  }

  ref(): void {
    this.#program.ref()
  }

  unref(): void {
    this.#program.unref()
  }
}

/** Of one that did not start. */
export function unstartedAside(program: UnstartedProgram): AsideProcess {
  const { pid, output, ended } = program
  return {
    pid,
    output,
    aside: noPieces,
    ended,
    write: () => program.write(),
    endInput: () => program.endInput(),
    signal: () => program.signal(),
    kill: () => program.kill(),
    ref: () => program.ref(),
    unref: () => program.unref(),
  }
}
