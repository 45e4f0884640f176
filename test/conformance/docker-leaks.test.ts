import { leakNothing } from './leaks.js'

leakNothing('docker', { total: 48 })
