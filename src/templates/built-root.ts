import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TemplateRoot } from '../contract/driver.js'
import { mergedNames } from './build-tree.js'

export interface BuiltTree {
  readonly name: string
  /** The folder that holds `usr` and `etc`. */
  readonly root: string
  readonly shell: string
  readonly env: Readonly<Record<string, string>>
}

/** A built tree as a driver binds it: its folders, and the names that lead into its /usr. */
export function rootOf({ name, root, shell, env }: BuiltTree): TemplateRoot {
  return {
    name,
    binds: readdirSync(root)
      .sort()
      .map((folder) => ({ source: join(root, folder), target: `/${folder}` })),
    symlinks: mergedNames.filter((each) => existsSync(join(root, 'usr', each))).map((each) => ({ path: `/${each}`, target: `usr/${each}` })),
    shell,
    env,
  }
}
