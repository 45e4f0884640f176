import { hold } from './hold.js'

hold('fake', 'client')
