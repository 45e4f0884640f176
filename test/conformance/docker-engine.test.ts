import { hold, isEnginesOwn } from './hold.js'

hold('docker', 'engine', { isDeep: isEnginesOwn })
