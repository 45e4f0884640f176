/** Builds the smallest template into the store it is told, says the phase it is told when it comes there, and stops itself there until it is killed. */
import { templateBuilder } from '../../../src/compose.js'
import { busybox } from '../busybox.js'

const [, , templateDir = '', phase = ''] = process.argv
await templateBuilder({ templateDir }).build(busybox, {
  again: true,
  onEvent: (event) => {
    if (event.type !== 'phase' || event.phase !== phase) return
    process.stdout.write(`${phase}\n`)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  },
})
