import { hold } from './hold.js'

hold('oci:runc', 'engine')
