import {
  accessSync,
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmdirSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../contract/errors.js'
import { killProcess } from './processes.js'

/** The calls a cgroup file system answers. Errors are the kernel's, with its code. */
export interface CgroupTree {
  read(file: string): string | undefined
  /** Kept open, to be read again and again; undefined when it is not there. */
  hold(file: string): { read(): string | undefined; close(): void } | undefined
  /** The same to be written again and again. Throws as `write` does. */
  holdToWrite(file: string): { write(value: string): void; close(): void }
  write(file: string, value: string): void
  has(file: string): boolean
  isWritable(file: string): boolean
  make(folder: string): void
  remove(folder: string): void
  /** Hands a file to a user, and to the group of the same number. */
  give(file: string, uid: number): void
  /** Whether this user made the group. */
  isOwn(folder: string): boolean
  /** Names of the groups below. */
  list(folder: string): string[]
}

/** Most files are one line; what fills this much is read again, whole. */
const usualBytes = 1000
/** Nothing is left in it when a call returns. */
const room = Buffer.allocUnsafe(usualBytes)

/** The kernel answers from memory within microseconds, so it is asked directly. */
export const kernelTree: CgroupTree = {
  read(file) {
    try {
      return readText(file).trim()
    } catch {
      return undefined
    }
  },
  hold(file) {
    try {
      return new HeldFile(openSync(file, constants.O_RDONLY))
    } catch {
      return undefined
    }
  },
  holdToWrite(file) {
    const descriptor = openSync(file, constants.O_WRONLY)
    return { write: (value) => void writeSync(descriptor, value), close: () => closeSync(descriptor) }
  },
  // Not for reading too: some files, such as cgroup.kill, may only be written, even by their owner.
  write(file, value) {
    const descriptor = openSync(file, constants.O_WRONLY)
    try {
      writeSync(descriptor, value)
    } finally {
      closeSync(descriptor)
    }
  },
  has: existsSync,
  isWritable(file) {
    try {
      accessSync(file, constants.W_OK)
      return true
    } catch {
      return false
    }
  },
  make(folder) {
    mkdirSync(folder, { mode: 0o755 })
    // Whatever the umask took away: the cell's own ids go through it.
    chmodSync(folder, 0o755)
  },
  remove: rmdirSync,
  give(file, uid) {
    chownSync(file, uid, uid)
  },
  isOwn: (folder) => statSync(folder, { throwIfNoEntry: false })?.uid === process.getuid?.(),
  list(folder) {
    try {
      return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
    } catch {
      return []
    }
  },
}

class HeldFile {
  readonly #descriptor: number

  constructor(descriptor: number) {
    this.#descriptor = descriptor
  }

  /** The kernel says it anew to whoever reads from the beginning. */
  read(): string | undefined {
    let text = ''
    try {
      for (let got = usualBytes; got === usualBytes; ) {
        got = readSync(this.#descriptor, room, 0, usualBytes, text.length)
        text += room.toString('latin1', 0, got)
      }
      return text.trim()
    } catch {
      return undefined
    }
  }

  close(): void {
    closeSync(this.#descriptor)
  }
}

/** Counts are read for every run, and without asking for the file's size first that takes a third of the calls. */
function readText(file: string): string {
  const descriptor = openSync(file, constants.O_RDONLY)
  try {
    const length = readSync(descriptor, room, 0, usualBytes, null)
    return length < usualBytes ? room.toString('latin1', 0, length) : readFileSync(file, 'latin1')
  } finally {
    closeSync(descriptor)
  }
}

const longestWaitMs = 10_000

/** One cgroup: a folder with its control files. */
export class Group {
  readonly folder: string
  readonly #tree: CgroupTree
  /** By name; undefined for a file that there is none of. Undefined as a whole while none is kept open. */
  #held: Map<string, ReturnType<CgroupTree['hold']>> | undefined
  readonly #heldToWrite = new Map<string, ReturnType<CgroupTree['holdToWrite']>>()
  /** It was seen to be gone: nobody but whoever made it makes it again. */
  #isGone = false

  constructor(folder: string, tree: CgroupTree) {
    this.folder = folder
    this.#tree = tree
  }

  /** Until `letGo`, files stay open from their first reading on: opening one takes longer than reading it. */
  hold(): void {
    this.#held ??= new Map()
  }

  letGo(): void {
    for (const file of this.#held?.values() ?? []) file?.close()
    for (const file of this.#heldToWrite.values()) file.close()
    this.#heldToWrite.clear()
    this.#held = undefined
  }

  /** The file that a process writes itself to in order to enter. */
  get procs(): string {
    return join(this.folder, 'cgroup.procs')
  }

  /** The same for one thread, in version 1. */
  get tasks(): string {
    return join(this.folder, 'tasks')
  }

  below(name: string): Group {
    return new Group(`${this.folder}/${name}`, this.#tree)
  }

  get name(): string {
    return basename(this.folder)
  }

  children(): Group[] {
    return this.#tree.list(this.folder).map((name) => this.below(name))
  }

  /** Every group beneath, the deepest first. */
  descendants(): Group[] {
    return this.children().flatMap((group) => [...group.descendants(), group])
  }

  make(): void {
    this.#isGone = false
    this.#tree.make(this.folder)
  }

  /** Lets a user put itself in, through a file of this name. */
  giveDoor(file: string, uid: number): void {
    this.#tree.give(join(this.folder, file), uid)
  }

  has(control: string): boolean {
    return this.#tree.has(join(this.folder, control))
  }

  read(control: string): string | undefined {
    if (!this.#held) return this.#tree.read(`${this.folder}/${control}`)
    const held = this.#held.get(control)
    if (held) return held.read()
    if (!this.#held.has(control)) this.#held.set(control, this.#tree.hold(`${this.folder}/${control}`))
    return this.#held.get(control)?.read()
  }

  write(control: string, value: string): void {
    if (!this.#held) {
      this.#tree.write(`${this.folder}/${control}`, value)
      return
    }
    let file = this.#heldToWrite.get(control)
    if (!file) this.#heldToWrite.set(control, (file = this.#tree.holdToWrite(`${this.folder}/${control}`)))
    file.write(value)
  }

  /** A file with one number; undefined when it is missing or says `max`. */
  number(control: string): number | undefined {
    const text = this.read(control)
    return text !== undefined && /^-?\d+$/.test(text) ? Number(text) : undefined
  }

  /** A number of a flat-keyed file such as `memory.events`. */
  keyed(control: string, key: string): number | undefined {
    const text = `\n${this.read(control) ?? ''}\n`
    const at = text.indexOf(`\n${key} `)
    const from = at + key.length + 2
    return at < 0 ? undefined : Number(text.slice(from, text.indexOf('\n', from)))
  }

  /** SIGKILL to everything in it and beneath: at once where the kernel can, else one by one after forking was stopped where that can be. */
  kill(): void {
    if (this.has('cgroup.kill')) {
      this.write('cgroup.kill', '1')
      return
    }
    if (this.has('pids.max')) this.write('pids.max', '0')
    for (const group of [...this.descendants(), this])
      for (const pid of (group.read('cgroup.procs') ?? '').split('\n')) if (Number(pid) > 0) killProcess(Number(pid))
  }

  /** With all that is left in it and every group beneath; quiet when it is gone already. */
  async remove(): Promise<void> {
    for (const group of this.descendants()) await group.#removeOne()
    await this.#removeOne()
  }

  /**
   * A process that was killed leaves its group only when it has ended, and version 1 tells nobody: rmdir itself is asked again until
   * the kernel has let go.
   */
  async #removeOne(): Promise<void> {
    const deadline = performance.now() + longestWaitMs
    for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 50)) {
      const refusal = this.tryRemove()
      if (refusal === undefined) return
      if (refusal !== 'EBUSY' || performance.now() > deadline) throw new SandboxError('internal', `cannot remove the cgroup ${this.folder}: ${refusal}`)
      this.#killQuietly()
      await sleep(waitMs)
    }
  }

  /** The kernel's code when it refuses; undefined when the group is gone. */
  tryRemove(): string | undefined {
    // What went while its cell ended is asked for again when that has ended: to be told so by the kernel is dearer than to remember it.
    if (this.#isGone) return undefined
    try {
      this.#tree.remove(this.folder)
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? String(error)
      if (code !== 'ENOENT') return code
    }
    this.#isGone = true
    return undefined
  }

  #killQuietly(): void {
    try {
      this.kill()
    } catch {
      // It went away between the two calls; the next rmdir says so.
    }
  }
}
