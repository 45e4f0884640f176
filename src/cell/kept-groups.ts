import { insideOf } from '../sys/posture/id-map.js'
import { readProc } from '../sys/posture/proc-files.js'
import { overflowId } from '../sys/posture/process-posture.js'
import { parseStatus } from '../sys/posture/process-status.js'
import { type CellIds, userId } from './arguments.js'

/** The groups of whoever started a cell with a single id, as the cell sees them: the kernel lets nobody drop them there. */
export function keptGroups(ids: CellIds): readonly number[] {
  if (ids.kind === 'range') return []
  if (ids.host !== undefined) return [userId]
  const map = [[userId, process.getegid?.() ?? 0, 1]] as const
  const groups = parseStatus(readProc('self', 'status')).groups.map((group) => insideOf(group, map) ?? overflowId)
  return [...new Set(groups)].sort((one, other) => one - other)
}
