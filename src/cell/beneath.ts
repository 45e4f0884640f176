/** What the overlays of a cell lie over: folders of its template, or of the host's. */
import { fstatSync } from 'node:fs'
import type { Beneath } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import { LowerFolder, type LowerFolderOrder } from '../sys/lower-folder.js'
import { overflowId } from '../sys/posture/process-posture.js'
import { type CellPlan, userId } from './arguments.js'
import { isKernel } from './kernel.js'
import { placedMounts } from './placed-mounts.js'
import { isOverlay } from './root-mode.js'

const templateIds = 65_536

/** A tmpfs before Linux 6.6 has no attributes of users: whether a folder hides what lies beneath it is not for the cell to see there. */
const keepsMarks = isKernel(6, 6)

/** While the sources of the mounts are still held. Undefined where nobody could tell what is hidden from what is not. */
export function findBeneath(plan: CellPlan): ((index: number) => Promise<Beneath>) | undefined {
  if (!keepsMarks) return undefined
  const orders = new Map<number, LowerFolderOrder>([...templateFolders(plan), ...mountedFolders(plan)])
  return async (index) => {
    const order = orders.get(index)
    if (order === undefined) throw new SandboxError('internal', `there is no overlay ${index}`)
    return LowerFolder.open(order)
  }
}

/** Of the template, which only the system's administrator changes; ids of the host's are the cell's there. */
function templateFolders(plan: CellPlan): [number, LowerFolderOrder][] {
  if (!isOverlay(plan)) return []
  const idOf = (id: number): number => (id < templateIds ? id : overflowId)
  const ownerOf: LowerFolderOrder['ownerOf'] = ({ uid, gid }) => ({ uid: idOf(uid), gid: idOf(gid) })
  return plan.spec.root.binds.map(({ source }, index) => [index, { path: source, identity: undefined, isPublicOnly: true, ownerOf }])
}

/** Of all owners only one is somebody in the cell. */
function mountedFolders(plan: CellPlan): [number, LowerFolderOrder][] {
  return placedMounts(plan).flatMap(({ mode, source, layer }): [number, LowerFolderOrder][] => {
    if (mode !== 'overlay') return []
    const { dev, ino } = fstatSync(source.descriptor)
    const owner = plan.ids.kind === 'range' || plan.arrival === 'put' ? source : { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }
    const ownerOf: LowerFolderOrder['ownerOf'] = ({ uid, gid }) => ({
      uid: uid === owner.uid ? userId : overflowId,
      gid: gid === owner.gid ? userId : overflowId,
    })
    return [[layer, { path: source.path, identity: { dev, ino }, isPublicOnly: false, ownerOf }]]
  })
}
