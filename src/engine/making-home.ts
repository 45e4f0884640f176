import type { MadeHome } from './live-cell.js'
import { makeCellInTime, type Patience, type Preparation, type Tools } from './making.js'
import { openNetwork } from './network-making.js'

/** The first cell of a sandbox, with the way out that the sandbox is to have. When it does not come about, nothing is left of either. */
export async function makeHome(preparation: Preparation, tools: Tools, patience: Patience): Promise<MadeHome> {
  const { way, cell } = preparation
  const network = way && (await openNetwork(cell.id, way, tools.makers.egress))
  try {
    const made = await makeCellInTime(preparation, tools, { ...patience, ports: () => network?.directPorts ?? [] })
    network?.join(made.open.warden, { direct: cell.network?.direct === true })
    return { ...made, root: cell.root, ...(network && { network }) }
  } catch (error) {
    await network?.close()
    throw error
  }
}
