import { hold } from './hold.js'

/** Thousands of operations each. */
const long = ['files/links-out', 'files/swapped-links', 'files/round-trip', 'files/deep-tree', 'endings/exit-codes', 'concurrency/hundred-runs']

hold('oci:runsc', 'driver', { isDeep: (id) => long.includes(id) })
