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

/** Folders in which a cell has something of its own, or mounts of its user's, so that what a template has in them is shown one by one. */
const divided = ['data', 'home', 'input', 'mnt', 'opt', 'output', 'srv', 'var']
/** A cell can have so many; more of them stay in one. */
const mostInner = 40

/** A built tree as a driver binds it: its folders, and the names that lead into its /usr. */
export function rootOf({ name, root, shell, env }: BuiltTree): TemplateRoot {
  const tops = readdirSync(root).sort()
  const isDivided = (top: string): boolean =>
    divided.includes(top) && lstatSync(join(root, top)).isDirectory() && readdirSync(join(root, top)).length <= mostInner
  const folders = tops.filter(isDivided).map((top) => `/${top}`)
  const inside = (top: string): string[] =>
    readdirSync(join(root, top))
      .sort()
      .map((inner) => `${top}/${inner}`)
  const entries = tops.flatMap((top) => (isDivided(top) ? inside(top) : [top]))
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
    ...(folders.length > 0 && { folders }),
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
