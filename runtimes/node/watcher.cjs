// The thread that notices interrupts while the main thread is busy. Node tells a thread of SIGINT only between two turns of its event loop, except in a
// script that runs with `breakOnSigint`: this thread waits in such a script, for ever, and has the main thread's JavaScript terminated through the inspector.
// Scripts within scripts: while one has just been interrupted, the next one out takes a signal that comes then; outside of them all it would end the process.
'use strict'
const { Session } = require('node:inspector')
const vm = require('node:vm')
const { workerData } = require('node:worker_threads')

const cells = new Int32Array(workerData.shared)
const { phase, asked, answered, lock, never, watching, renew } = workerData.cells
const { idle, running } = workerData.phases

const session = new Session()
session.connectToMainThread()

/** The innermost waits; each of the others runs the one before it again and again. */
const scripts = ['watcher.wait()', 'watcher.turn(0)', 'watcher.turn(1)'].map((source) => new vm.Script(source))

function isAnswered() {
  return Atomics.load(cells, phase) === idle || Atomics.load(cells, answered) === Atomics.load(cells, asked)
}

/** Main holds the lock while it writes a frame, which must not be cut off in the middle. */
function terminate() {
  while (Atomics.compareExchange(cells, lock, 0, 1) === 2) {
    if (isAnswered()) return
    Atomics.wait(cells, lock, 2, 20)
  }
  session.post('Runtime.terminateExecution')
}

function interrupt() {
  if (Atomics.load(cells, phase) === idle) return
  Atomics.add(cells, asked, 1)
  // Code that awaits is told by the kernel's own timer; code that runs is not, and neither is code that awaits and keeps the loop from turning.
  for (let round = 0; !isAnswered(); round++) {
    if (round > 0 || Atomics.load(cells, phase) === running) terminate()
    Atomics.wait(cells, answered, Atomics.load(cells, answered), 300)
  }
}

globalThis.watcher = {
  wait() {
    Atomics.store(cells, watching, 1)
    Atomics.notify(cells, watching)
    Atomics.wait(cells, never, 0)
  },
  turn(level) {
    for (;;) {
      try {
        scripts[level].runInThisContext({ breakOnSigint: true })
        // All the way out, and in again: that has Node take SIGINT anew, after code made it forget.
        if (Atomics.load(cells, renew) === 1) return
      } catch {
        interrupt()
      }
    }
  },
}
for (;;) {
  Atomics.store(cells, renew, 0)
  globalThis.watcher.turn(scripts.length - 1)
}
