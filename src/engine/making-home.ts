import type { MadeHome } from './live-cell.js'
import { type MadeCell, makeCellInTime, type Patience, type Preparation, type Tools } from './making.js'
import { openNetwork } from './network-making.js'

/** The first cell of a sandbox, with the way out that the sandbox is to have. When it does not come about, nothing is left of either. */
export async function makeHome(preparation: Preparation, tools: Tools, patience: Patience): Promise<MadeHome> {
  const { way, cell } = preparation
  const network = way && (await openNetwork(cell.id, way, tools.makers.egress))
  let made: MadeCell | undefined
  try {
    if (network) cell.faults?.('create/network')
    made = await makeCellInTime(preparation, tools, { ...patience, ports: () => network?.directPorts ?? [] })
    network?.join(made.open.warden, { direct: cell.network?.direct === true })
    cell.faults?.('create/joined')
    return { ...made, root: cell.root, ...(network && { network }) }
  } catch (error) {
    made?.open.warden.close()
    await Promise.all([made?.open.cell.close(), network?.close()])
    throw error
  }
}
