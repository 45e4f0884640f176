/** The one sandbox of a connection: made when the first call needs it, made anew when it is gone, closed with the connection. */
import { SandboxError } from '../contract/errors.js'
import type { Platform } from '../contract/platform.js'

export interface SandboxSource {
  readonly platform: Platform
  /** Makes a sandbox and puts into it what belongs there; resolves to its id. */
  open(signal: AbortSignal): Promise<string>
  /** Called once, with the sandbox that is there at the end, before it is closed. */
  finish(id: string): Promise<void>
}

/** Something of a sandbox that no longer is may be done again in a new one, when it had not begun. */
export interface Seat {
  readonly id: string
  /** What the agent has to know of the sandbox before it believes the answer. */
  readonly note: string | undefined
}

/** Codes that tell that the sandbox is gone, and not that the call was wrong. */
const goneCodes = new Set(['expired', 'closed', 'broken'])

function isGone(error: unknown): error is SandboxError {
  return error instanceof SandboxError && (goneCodes.has(error.code) || error.message.startsWith('there is no sandbox '))
}

export class OwnSandbox {
  readonly platform: Platform
  readonly #source: SandboxSource
  readonly #closing = new AbortController()
  #current: Promise<string> | undefined
  #id: string | undefined
  #why: string | undefined

  constructor(source: SandboxSource) {
    this.#source = source
    this.platform = source.platform
  }

  /** Does something in the sandbox. Where that was found gone before anything was done, it is done once in a new one. */
  async use<T>(act: (seat: Seat) => Promise<T>): Promise<T> {
    const first = await this.#seat()
    try {
      return await act(first)
    } catch (error) {
      if (!isGone(error)) throw error
      this.#forget(first.id, error)
      if (!(error instanceof NotBegun)) throw error
    }
    const second = await this.#seat()
    return act(second)
  }

  async #seat(): Promise<Seat> {
    this.#current ??= this.#open()
    const id = await this.#current
    this.#id = id
    const note = this.#why
    this.#why = undefined
    return { id, note }
  }

  #open(): Promise<string> {
    this.#closing.signal.throwIfAborted()
    const opened = this.#source.open(this.#closing.signal)
    opened.catch(() => {
      if (this.#current === opened) this.#current = undefined
    })
    return opened
  }

  /** Several calls may find it gone; only the first of them makes way for a new one. */
  #forget(id: string, { message }: SandboxError): void {
    if (this.#id !== id) return
    this.#id = undefined
    this.#current = undefined
    this.#why = `The sandbox of the earlier calls is gone (${message}). This ran in a new one: files and variables from before are not there; make them again.`
  }

  /** Idempotent; resolves when nothing is left. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(new SandboxError('closed', 'the connection has ended'))
    const id = await this.#current?.catch(() => undefined)
    if (id === undefined) return
    await this.#source.finish(id)
    await this.platform.close(id)
  }
}

/** The sandbox was gone before anything of the call was done in it. */
class NotBegun extends SandboxError {}

/** Tells what fails at its very beginning from what fails on the way. */
export async function beginning<T>(start: Promise<T>): Promise<T> {
  try {
    return await start
  } catch (error) {
    if (!isGone(error)) throw error
    throw new NotBegun(error.code, error.message, { cause: error })
  }
}
