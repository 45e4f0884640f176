import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** With all above it; one that is there is left alone. Not `recursive`: that never returns where the system says of a folder that is there that nothing can be in it, as /proc does. */
export function makeFolder(path: string): void {
  if (existsSync(path) && statSync(path).isDirectory()) return
  const above = dirname(path)
  if (above !== path && !existsSync(above)) makeFolder(above)
  try {
    mkdirSync(path)
  } catch (error) {
    // Somebody else may have made it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(path).isDirectory()) throw error
  }
}
