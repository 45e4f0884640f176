import { hold, isEnginesOwn } from './hold.js'

// All of it is asked of a client in cells that have walls.
hold('fake', 'client', { isDeep: isEnginesOwn })
