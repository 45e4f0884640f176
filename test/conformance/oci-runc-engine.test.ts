import { hold, isEnginesOwn } from './hold.js'

// For an ordinary user the container is another, and the engine the same.
hold('oci:runc', 'engine', process.getuid?.() === 0 ? {} : { isDeep: isEnginesOwn })
