import { leakNothing } from './leaks.js'

leakNothing('oci:runc')
