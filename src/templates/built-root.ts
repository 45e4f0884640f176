import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { TemplateRoot } from '../contract/driver.js'
import { mergedNames } from './build-tree.js'
import type { StoredTemplate } from './record.js'

export interface BuiltTree {
  readonly name: string
  /** The folder that holds `usr` and `etc`. */
  readonly root: string
  readonly shell: string
  readonly env: Readonly<Record<string, string>>
}

/** Folders in which a cell has some of its own, so that what a template has in them is shown one by one. */
const divided = ['home', 'var']

/** A built tree as a driver binds it: its folders, and the names that lead into its /usr. */
export function rootOf({ name, root, shell, env }: BuiltTree): TemplateRoot {
  const entries = readdirSync(root)
    .sort()
    .flatMap((top) => (divided.includes(top) ? readdirSync(join(root, top)).map((inner) => `${top}/${inner}`) : [top]))
  // A link is never bound: the kernel would follow it to what this machine has there.
  const isLink = (path: string): boolean => lstatSync(join(root, path)).isSymbolicLink()
  const merged = mergedNames.filter((each) => !entries.includes(each) && lstatSync(join(root, 'usr', each), { throwIfNoEntry: false })?.isDirectory())
  return {
    name,
    binds: entries.filter((path) => !isLink(path)).map((path) => ({ source: join(root, path), target: `/${path}` })),
    symlinks: [
      ...merged.map((each) => ({ path: `/${each}`, target: `usr/${each}` })),
      ...entries.filter(isLink).map((path) => ({ path: `/${path}`, target: readlinkSync(join(root, path)) })),
    ],
    shell,
    env,
  }
}

/** The same of a template that is kept, with all that its record says. */
export function storedRoot({ object, info }: StoredTemplate): TemplateRoot {
  const { name, id, shell, env, image } = info
  return {
    ...rootOf({ name, root: join(object, 'root'), shell, env }),
    id,
    ...(image && { imageDigest: image.digest }),
    ...(image && image.workdir !== '' && { workdir: image.workdir }),
  }
}
