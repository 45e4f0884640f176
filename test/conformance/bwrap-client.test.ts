import { hold } from './hold.js'

hold('bwrap', 'client')
