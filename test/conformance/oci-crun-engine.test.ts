import { hold } from './hold.js'

hold('oci:crun', 'engine')
