/** Every template there is: those that were built, and names for what this machine has. A built one comes before the machine's of the same name. */
import type { TemplateRoot } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import { storedRoot } from './built-root.js'
import { createHostTemplates, type HostTemplatesOptions, hostTemplateNames, type Templates } from './host.js'
import { recipes } from './recipes/index.js'
import { damageOf, type TemplateStore } from './store.js'

export interface TemplatesOptions extends HostTemplatesOptions {
  readonly store: TemplateStore
}

export function createTemplates({ store, ...options }: TemplatesOptions): Templates & { idOf(name: string): string | undefined } {
  const host = createHostTemplates(options)
  return {
    idOf: (name) => store.find(name)?.info.id,
    async resolve(name) {
      return builtRoot(store, name) ?? (hostTemplateNames.includes(name) ? host.resolve(name) : Promise.reject(await unknownTemplate(store, name)))
    },
  }
}

/** Undefined when none of this name was built. Throws SandboxError('broken') for one that is not what was built. */
function builtRoot(store: TemplateStore, name: string): TemplateRoot | undefined {
  const stored = store.find(name)
  if (stored === undefined) return undefined
  const damage = damageOf(stored.object)
  if (damage !== undefined)
    throw new SandboxError('broken', `template ${name} is not used, because it is damaged: ${damage}`, { hint: `glovebox template inspect ${name} --verify` })
  return { ...storedRoot(stored), hold: (cellId) => store.hold(stored, cellId) }
}

export async function unknownTemplate(store: TemplateStore, name: string): Promise<SandboxError> {
  const there = [...new Set([...hostTemplateNames, ...(await store.names())])].join(', ')
  if (!recipes.has(name)) {
    const more = [...recipes.keys()].filter((each) => !there.split(', ').includes(each))
    const buildable = more.length === 0 ? '' : `; ${more.join(', ')} can be built`
    return new SandboxError('invalid', `template: there is no '${name}'; there are ${there}${buildable}`, {
      hint: `glovebox template ${more.length === 0 ? 'ls' : `build ${more[0]}`}`,
    })
  }
  return new SandboxError('invalid', `template: '${name}' has not been built on this machine; there are ${there}`, { hint: `glovebox template build ${name}` })
}
