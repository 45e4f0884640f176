import { hold } from './hold.js'

/** What depends on what a driver does with limits, endings and pauses; the rest is the engine's with every driver, or was asked of the driver by itself. */
const often = ['attacks/', 'lifetime/', 'limits/', 'pause/', 'pools/', 'receipts/']

hold('oci:runsc', 'engine', { isDeep: (id) => !often.some((group) => id.startsWith(group)) })
