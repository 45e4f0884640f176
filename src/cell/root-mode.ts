import type { CellPlan } from './arguments.js'

/** The whole root is the cell's disk; only a cell with ids of its own can have that. */
export function isOverlay({ spec, ids }: CellPlan): boolean {
  return spec.rootMode === 'overlay' && ids.kind === 'range'
}
