import { lyingWarden } from './twists.js'
import type { Mutant } from './table.js'

/** A cell whose runs were promised liners. */
export const linerMutants: readonly Mutant[] = [
  {
    name: 'starts what is to be in a liner in the cell itself',
    driver: 'bwrap',
    depth: 'driver',
    twist: {
      connect: lyingWarden({
        request: ({ liner: _, ...request }) => request,
      }),
    },
    caughtBy: ['liners/apart-at-once', 'liners/fork-bomb', 'liners/leave-nothing-forked', 'liners/leave-nothing-started', 'liners/makers-out-of-reach'],
    among: 'liners/',
  },
]
