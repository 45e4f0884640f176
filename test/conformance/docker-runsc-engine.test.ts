import { hold } from './hold.js'

/** The rest is the engine's, or gVisor's, with whatever starts it. */
const own = ['receipts/own-kernel', 'lifetime/run-leaves-nothing', 'pause/stands-still']

hold('docker:runsc', 'engine', { isDeep: (id) => !own.includes(id) })
