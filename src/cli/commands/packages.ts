import { packageShelf } from '../../compose.js'
import { exitCodes } from '../exit-codes.js'
import { printJson } from '../print.js'
import { writeOut } from '../streams.js'
import { bytesInWords } from '../words.js'

export interface PackagesFlags {
  readonly prune?: true
  readonly json?: true
}

/** How much is kept; with `prune` it is gone afterwards. */
export async function packages(flags: PackagesFlags): Promise<number> {
  const { shelf, folder } = await packageShelf()
  const { files, bytes } = await shelf.size()
  if (flags.prune) await shelf.prune(0)
  if (flags.json) await printJson({ folder, files, bytes, pruned: flags.prune === true })
  else await writeOut(`${files} ${files === 1 ? 'file' : 'files'}, ${bytesInWords(bytes)}, ${flags.prune ? 'removed from' : 'in'} ${folder}\n`)
  return exitCodes.ok
}
