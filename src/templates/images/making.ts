/** `template pull` and `template import`: an image that is somewhere becomes a template that is here. */
import { basename, join } from 'node:path'
import { SandboxError } from '../../contract/errors.js'
import type { BuildOptions, BuildResult } from '../../contract/templates.js'
import { sweepDrafts } from '../../sys/draft.js'
import { registryLogin } from '../../sys/registry-login.js'
import { removeTree } from '../../sys/tree-removal.js'
import { type BuildTools, machineError, takeTurn } from '../build.js'
import { hostTemplateNames } from '../host.js'
import { recipes } from '../recipes/index.js'
import { namePattern } from '../store.js'
import { openArchive } from './image-archive.js'
import { keepImage, type ReadableImage } from './image-template.js'
import type { ImageLimits } from './layers.js'
import { nameOfImage, parseReference } from './reference.js'
import { openRemote } from './registry.js'
import type { Login } from './registry-access.js'

export interface ImportOptions extends BuildOptions {
  /** What it is called here; made from the image's own name when not given. */
  readonly name?: string
  readonly limits?: ImageLimits
}

export interface PullOptions extends ImportOptions {
  /** Instead of what `docker login` wrote. */
  readonly login?: Login
  /** HTTP, although the registry is not on this machine. */
  readonly isPlain?: boolean
  /** How long a registry may be silent. */
  readonly idleMs?: number
}

export async function pullTemplate(text: string, tools: BuildTools, options: PullOptions = {}): Promise<BuildResult> {
  const reference = parseReference(text)
  const name = nameFor(options.name ?? nameOfImage(reference))
  const { login = registryLogin(reference.registry), isPlain, idleMs, limits } = options
  return inTurn(tools, options, async ({ blobs, signal, tell }) => {
    const image = await openRemote(reference, { blobs, login, isPlain, idleMs, limits, signal, tell })
    return { image, name }
  })
}

export async function importTemplate(path: string, tools: BuildTools, options: ImportOptions = {}): Promise<BuildResult> {
  const own = basename(path).replace(/(?:\.tar)?(?:\.(?:gz|zst|tgz|tar))?$/, '')
  const name = nameFor(options.name ?? own.toLowerCase().replace(/[^a-z0-9._-]+/g, '-'))
  return inTurn(tools, options, async ({ draft, signal, tell }) => {
    tell({ type: 'phase', phase: 'asking', detail: basename(path) })
    return { name, image: await openArchive(path, { spool: join(draft, 'archive.tar'), limits: options.limits, signal }) }
  })
}

/** A stranger's image never takes a name that means something of ours. */
export function nameFor(name: string): string {
  if (!namePattern.test(name))
    throw new SandboxError('invalid', `name: a template cannot be called '${JSON.stringify(name.slice(0, 100)).slice(1, -1)}'`, { hint: '--name my-image' })
  if (recipes.has(name) || hostTemplateNames.includes(name) || name === 'scratch')
    throw new SandboxError('invalid', `name: '${name}' is the name of a template of Glovebox's own`, { hint: `--name my-${name}` })
  return name
}

interface Turn extends Pick<BuildOptions, 'signal'> {
  /** Removed afterwards. */
  readonly draft: string
  readonly blobs: string
  readonly tell: NonNullable<BuildOptions['onEvent']>
}

async function inTurn(
  tools: BuildTools,
  options: ImportOptions,
  openImage: (turn: Turn) => Promise<{ readonly image: ReadableImage; readonly name: string }>,
): Promise<BuildResult> {
  const { store } = tools
  const { signal, onEvent: tell = () => undefined, limits, again } = options
  using _lock = await takeTurn({ store, signal, tell })
  await store.sweep()
  const blobs = store.part('blobs')
  sweepDrafts(blobs)
  const draft = store.newDraft()
  try {
    const { image, name } = await openImage({ draft, blobs, tell, ...(signal && { signal }) })
    return await keepImage(image, { name, ...tools, limits, again, signal, tell })
  } catch (error) {
    throw error instanceof SandboxError || signal?.aborted === true || (error as NodeJS.ErrnoException).code === undefined ? error : machineError(draft, error)
  } finally {
    await removeTree(draft)
  }
}
