// What the main thread and the watcher tell each other in shared memory, and the main thread's side of an interrupt.
//
// An execution's phase says whether its code is on the stack (running) or not (awaiting). The watcher counts `asked` up; the main thread makes `answered`
// equal when it has ended the execution. `lock` is 2 while the main thread writes something that must be whole, 1 from when the watcher has asked for a
// termination until the main thread is sure that it has struck.
import watcher from './watcher.cjs'

const cells = { phase: 0, asked: 1, answered: 2, lock: 3, never: 4, watching: 5, renew: 6 }
const phases = { idle: 0, running: 1, awaiting: 2 }
const tickMs = [40, 65]
/** A termination that was asked for strikes at the next loop or call: within this time, or it has struck. */
const strikeMs = 20
/** For the thread to be there, on a machine that has much else to do. */
const mostStartMs = 5000

export class Signals {
  #shared = new SharedArrayBuffer(32)
  #cells = new Int32Array(this.#shared)
  #system
  #timers = []
  #hasThread = false
  #onInterrupt

  constructor(system, onInterrupt) {
    this.#system = system
    this.#onInterrupt = onInterrupt
    try {
      const thread = new system.Worker(watcher, { eval: true, workerData: { shared: this.#shared, cells, phases }, stdin: false, execArgv: [], env: {} })
      thread.unref()
      // Without it interrupts do nothing, and the engine's grace ends the kernel.
      thread.on('error', () => {})
      this.#hasThread = true
    } catch {
      // As above: no threads in this cell.
    }
  }

  /** Returns when an interrupt would be noticed. */
  begin() {
    if (this.#hasThread) Atomics.wait(this.#cells, cells.watching, 0, mostStartMs)
    Atomics.store(this.#cells, cells.answered, Atomics.load(this.#cells, cells.asked))
    this.#arm()
  }

  running() {
    Atomics.store(this.#cells, cells.phase, phases.running)
  }

  awaiting() {
    Atomics.store(this.#cells, cells.phase, phases.awaiting)
  }

  get isAsked() {
    return Atomics.load(this.#cells, cells.asked) !== Atomics.load(this.#cells, cells.answered)
  }

  /** No termination strikes while `write` runs; one that was asked for before strikes before. */
  whole(write) {
    const isHeld = Atomics.load(this.#cells, cells.lock) === 2
    while (!isHeld && Atomics.compareExchange(this.#cells, cells.lock, 0, 2) !== 0) this.#absorb()
    try {
      return write()
    } finally {
      if (!isHeld) this.#release()
    }
  }

  end() {
    this.#disarm()
    this.#listen()
    Atomics.store(this.#cells, cells.phase, phases.idle)
    Atomics.store(this.#cells, cells.answered, Atomics.load(this.#cells, cells.asked))
    Atomics.notify(this.#cells, cells.answered)
  }

  /** Code that removed all listeners removed ours too, and with it what keeps SIGINT from ending the process. */
  #listen() {
    const { process, listenerCount, on } = this.#system
    if (!this.#hasThread || listenerCount(process, 'SIGINT') > 0) return
    on(process, 'SIGINT', () => {})
    Atomics.store(this.#cells, cells.watching, 0)
    Atomics.store(this.#cells, cells.renew, 1)
    Atomics.notify(this.#cells, cells.never)
    Atomics.wait(this.#cells, cells.watching, 0, mostStartMs)
  }

  #release() {
    Atomics.store(this.#cells, cells.lock, 0)
    Atomics.notify(this.#cells, cells.lock)
  }

  #absorb() {
    const until = Date.now() + strikeMs
    while (Date.now() < until && Atomics.load(this.#cells, cells.lock) === 1);
    if (Atomics.load(this.#cells, cells.lock) === 1) this.#release()
  }

  /** Two timers, each of which sets both again: a termination can take one with it. */
  #arm() {
    this.#disarm()
    this.#timers = tickMs.map((ms) => this.#system.setTimeout(() => this.#tick(), ms))
  }

  #disarm() {
    for (const timer of this.#timers) this.#system.clearTimeout(timer)
    this.#timers = []
  }

  #tick() {
    this.#arm()
    this.#onInterrupt(this.isAsked)
  }
}
