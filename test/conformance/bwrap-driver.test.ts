import { hold } from './hold.js'

hold('bwrap', 'driver')
