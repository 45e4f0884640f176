import { hold, isEnginesOwn } from './hold.js'

hold('oci:runsc', 'engine', { isDeep: isEnginesOwn })
