import { leakNothing } from './leaks.js'

leakNothing('bwrap')
