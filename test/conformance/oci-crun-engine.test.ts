import { hold, isEnginesOwn } from './hold.js'

hold('oci:crun', 'engine', { isDeep: isEnginesOwn })
