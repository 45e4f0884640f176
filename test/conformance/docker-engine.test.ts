import { hold } from './hold.js'

hold('docker', 'engine')
