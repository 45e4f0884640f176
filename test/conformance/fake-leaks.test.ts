import { leakNothing } from './leaks.js'

leakNothing('fake')
