/**
 * What is looked at each time a template is used. Whoever changes a file, or a name in a folder, changes times that nobody can set: those of the manifest, of everything
 * in `/etc`, and of the folders near the top were written down when the template was last known to be whole. That is a matter of a millisecond; reading all of it is
 * `template inspect --verify`.
 */
import { createHash } from 'node:crypto'
import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const depthOf: Readonly<Record<string, number>> = { etc: 8 }
const usualDepth = 2
const writableByOthers = 0o022

/** Undefined when something is not there, belongs to somebody else, or can be written by others. */
export function sealOf(object: string): string | undefined {
  const hash = createHash('sha256')
  try {
    const top = lstatSync(join(object, 'root'), { bigint: true })
    for (const path of sealedPaths(object)) {
      const status = lstatSync(join(object, path), { bigint: true })
      if (status.uid !== top.uid) return undefined
      if (!status.isSymbolicLink() && (Number(status.mode) & writableByOthers) !== 0) return undefined
      hash.update(`${path}\0${status.ino}\0${status.mode}\0${status.size}\0${status.mtimeNs}\0${status.ctimeNs}\n`)
    }
    const own = process.getuid?.()
    if (own !== undefined && own !== 0 && top.uid !== BigInt(own)) return undefined
  } catch {
    return undefined
  }
  return hash.digest('hex')
}

function sealedPaths(object: string): string[] {
  const paths = ['manifest', 'record.json', 'root']
  for (const name of readdirSync(join(object, 'root')).sort()) {
    paths.push(`root/${name}`)
    if (lstatSync(join(object, 'root', name)).isDirectory())
      addBelow(`root/${name}`, { object, paths, depth: depthOf[name] ?? usualDepth, files: name === 'etc' })
  }
  return paths
}

interface Adding {
  readonly object: string
  readonly paths: string[]
  readonly depth: number
  readonly files: boolean
}

function addBelow(folder: string, adding: Adding): void {
  if (adding.depth === 0) return
  for (const entry of readdirSync(join(adding.object, folder), { withFileTypes: true }).sort((one, other) => (one.name < other.name ? -1 : 1))) {
    if (!adding.files && !entry.isDirectory()) continue
    const path = `${folder}/${entry.name}`
    adding.paths.push(path)
    if (entry.isDirectory()) addBelow(path, { ...adding, depth: adding.depth - 1 })
  }
}
