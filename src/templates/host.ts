import { existsSync, lstatSync, mkdirSync, readlinkSync, realpathSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import type { TemplateRoot } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import { installCommand } from '../sys/install-command.js'
import { cachePlace } from '../sys/places.js'
import { buildEtc } from './etc.js'
import { mountsBelow, ownMounts } from './mounts-below.js'

export interface Templates {
  /** Throws 'invalid' for a name that there is not, 'unsupported' when the host lacks what the template is for. */
  resolve(name: string): Promise<TemplateRoot>
}

export interface HostTemplatesOptions {
  /** Where the host's own files are; '/' unless told otherwise. */
  readonly host?: string
  readonly cache?: string
}

interface Recipe {
  /** One of these must be below the host's /usr. */
  readonly needs: readonly string[]
  readonly systemPackage: string
}

const recipes: Readonly<Record<string, Recipe>> = {
  host: { needs: [], systemPackage: '' },
  shell: { needs: [], systemPackage: '' },
  python: { needs: ['/usr/bin/python3', '/usr/local/bin/python3'], systemPackage: 'python3' },
  node: { needs: ['/usr/bin/node', '/usr/local/bin/node'], systemPackage: 'nodejs' },
}

/** What needs no building. */
export const hostTemplateNames: readonly string[] = Object.keys(recipes)

const rootNames = ['bin', 'sbin', 'lib', 'lib64', 'lib32', 'libx32']

/** Templates made of what this machine has: its /usr read-only and an /etc of our own. */
export function createHostTemplates(options: HostTemplatesOptions = {}): Templates {
  const host = options.host ?? '/'
  let built: Promise<BuiltRoot> | undefined
  return {
    async resolve(name) {
      const recipe = Object.hasOwn(recipes, name) ? recipes[name] : undefined
      if (!recipe) throw new SandboxError('invalid', `template: there is no '${name}'; there are ${Object.keys(recipes).join(', ')}`)
      checkNeeds({ name, recipe, host })
      // A cache may be cleared at any time, and a build that failed may succeed now.
      const known = await built?.catch(() => undefined)
      if (known === undefined || !existsSync(known.etc)) built = buildRoot(host, options.cache)
      const { root } = await (built as Promise<BuiltRoot>)
      return { name, ...root, binds: await withMountsBelow(root.binds) }
    },
  }
}

interface BuiltRoot {
  readonly root: Omit<TemplateRoot, 'name'>
  readonly etc: string
}

function checkNeeds({ name, recipe, host }: { readonly name: string; readonly recipe: Recipe; readonly host: string }): void {
  if (recipe.needs.length === 0) return
  for (const program of recipe.needs) {
    const real = realPathOf(join(host, program))
    // A link that leaves /usr leads nowhere in the cell.
    if (real?.startsWith(join(host, 'usr/'))) return
  }
  throw new SandboxError('unsupported', `template ${name} needs ${recipe.needs[0]}, which this machine does not have`, {
    hint: installCommand(recipe.systemPackage),
  })
}

/** By a path that leads to it in the cell too: of the host it has what is below these folders, and nothing else that a link may lead to. */
function findShell(host: string): string {
  const bound = ['usr', ...rootNames].map((name) => join(host, name, '/'))
  for (const path of ['/bin/bash', '/usr/bin/bash']) {
    const real = realPathOf(join(host, path))
    if (real !== undefined && bound.some((folder) => real.startsWith(folder))) return path
  }
  return '/bin/sh'
}

async function buildRoot(host: string, cache: string | undefined): Promise<BuiltRoot> {
  const shell = findShell(host)
  const binds = [{ source: join(host, 'usr'), target: '/usr' }]
  const symlinks: { path: string; target: string }[] = []
  for (const name of rootNames) {
    const path = join(host, name)
    const status = lstatSync(path, { throwIfNoEntry: false })
    if (status?.isSymbolicLink()) {
      const target = readlinkSync(path)
      if (resolve('/', target).startsWith('/usr/')) symlinks.push({ path: `/${name}`, target })
    } else if (status?.isDirectory()) {
      binds.push({ source: path, target: `/${name}` })
    }
  }
  const place = cache ?? join(cachePlace(), 'templates')
  mkdirSync(place, { recursive: true, mode: 0o700 })
  const etc = await buildEtc({ source: join(host, 'etc'), cache: place, shell })
  binds.push({ source: etc, target: '/etc' })
  return { etc, root: { binds, symlinks, shell, env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' } } }
}

/** Looked for each time, because mounts come and go. */
async function withMountsBelow(binds: TemplateRoot['binds']): Promise<TemplateRoot['binds']> {
  const mounts = ownMounts()
  const found = await Promise.all(
    binds.map(async ({ source, target }) =>
      (await mountsBelow(source, mounts)).map((path) => ({ source: path, target: join(target, relative(source, path)) })),
    ),
  )
  return binds.flatMap((bind, index) => [bind, ...(found[index] ?? [])])
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
