import { SandboxError } from '../contract/errors.js'
import type { BuildOptions, BuildResult, Pruned, Recipe, TemplateDifference, TemplateListing } from '../contract/templates.js'
import { buildTemplate } from './build.js'
import { hostTemplateNames } from './host.js'
import { buildFolder, type FolderOptions } from './images/build-folder.js'
import { type ImportOptions, importTemplate, type PullOptions, pullTemplate } from './images/making.js'
import type { WalkOptions } from './manifest.js'
import { type PruneOptions, pruneTemplates } from './prune.js'
import { recipes } from './recipes/index.js'
import { notThere, type TemplateStore } from './store.js'
import { unknownTemplate } from './templates.js'
import type { Workshop } from './workshop.js'

/** All that can be done with templates on this machine. */
export interface TemplateBuilder {
  readonly recipes: readonly Recipe[]
  /** Throws SandboxError: 'invalid' for a recipe that there is not, 'unsupported', 'unavailable' or 'full' for a machine that cannot build it. */
  build(recipe: string | Recipe, options?: BuildOptions): Promise<BuildResult>
  /** An image of a registry, by tag or digest. Throws SandboxError: 'not-found', 'denied', 'unavailable'; 'conflict' for what is not what its digest says. */
  pull(reference: string, options?: PullOptions): Promise<BuildResult>
  /** An archive: what `docker save` writes, an OCI layout, a plain root. Throws SandboxError('invalid') for one that is refused. */
  import(path: string, options?: ImportOptions): Promise<BuildResult>
  /** What the Dockerfile of a folder says. Throws SandboxError('invalid') naming its line that is wrong, or whose program failed. */
  buildFolder(folder: string, options?: FolderOptions): Promise<BuildResult>
  list(): Promise<readonly TemplateListing[]>
  /** Throws SandboxError('not-found'). */
  inspect(name: string): TemplateListing
  /** What an image means to be run; empty for a template that says nothing of it. Rejects with SandboxError('invalid') where there is none of this name. */
  commandOf(name: string): Promise<readonly string[]>
  /** Reads all of it; nothing when it is what was built. */
  verify(name: string, options?: WalkOptions): Promise<readonly TemplateDifference[]>
  /** What it removed, or with `isTrial` would, kind by kind. */
  prune(options?: PruneOptions): Promise<readonly Pruned[]>
  /** False when there was none. Throws SandboxError('conflict') while a sandbox uses it. */
  remove(name: string): Promise<boolean>
}

export function createTemplateBuilder(store: TemplateStore, workshop: Workshop): TemplateBuilder {
  return {
    recipes: [...recipes.values()],
    build: async (recipe, options) => buildTemplate(typeof recipe === 'string' ? recipeOf(recipe) : recipe, { store, workshop }, options),
    pull: (reference, options) => pullTemplate(reference, { store, workshop }, options),
    import: (path, options) => importTemplate(path, { store, workshop }, options),
    buildFolder: (folder, options) => buildFolder(folder, { store, workshop }, options),
    list: () => store.list(),
    inspect: (name) => {
      const listing = store.listing(name)
      if (listing === undefined) throw notThere(name)
      return listing
    },
    commandOf: async (name) => {
      const listing = store.listing(name)
      if (listing === undefined && !hostTemplateNames.includes(name)) throw await unknownTemplate(store, name)
      return [...(listing?.image?.entrypoint ?? []), ...(listing?.image?.cmd ?? [])]
    },
    verify: (name, options) => store.verify(name, options),
    prune: (options) => pruneTemplates(store, options),
    remove: (name) => store.remove(name),
  }
}

function recipeOf(name: string): Recipe {
  const recipe = recipes.get(name)
  if (recipe) return recipe
  throw new SandboxError('invalid', `there is no recipe '${name}'; there are ${[...recipes.keys()].join(', ')}`, { hint: 'glovebox template build data' })
}
