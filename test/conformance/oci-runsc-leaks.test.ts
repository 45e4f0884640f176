import { leakNothing } from './leaks.js'

leakNothing('oci:runsc', { total: 40 })
