import { type Route, type RouteName, routes } from '../contract/wire/routes.js'
import { HttpError } from './http-error.js'

export interface Match {
  readonly name: RouteName
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
}

interface Node {
  readonly literals: Map<string, Node>
  param: Node | undefined
  /** Those that end here, by method. */
  readonly ends: Map<string, Leaf>
  /** Those that take the rest, whatever it is. */
  readonly rests: Map<string, Leaf>
}

interface Leaf {
  readonly name: RouteName
  readonly params: readonly string[]
}

const proxied = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Finds routes by their paths; there are no others than those of the contract. */
export class Router {
  readonly #root = newNode()

  constructor() {
    for (const name of Object.keys(routes) as RouteName[]) this.#add(name)
  }

  /** Undefined where there is no such path. Throws when there is, and none of this method. */
  match(method: string, path: string): Match | undefined {
    const parts = path.split('/').slice(1)
    const values: string[] = []
    let node = this.#root
    for (const [index, part] of parts.entries()) {
      const rest = node.rests.get(method)
      if (rest) return matched(rest, values, parts.slice(index))
      const next: Node | undefined = node.literals.get(part) ?? node.param
      if (!next) return undefined
      if (next === node.param) values.push(decoded(part))
      node = next
    }
    const leaf = node.ends.get(method)
    if (leaf) return matched(leaf, values)
    const methods = [...node.ends.keys()]
    if (methods.length === 0) return undefined
    throw new HttpError(405, `method: expected ${methods.join(' or ')}, got ${method.slice(0, 20)}`)
  }

  #add(name: RouteName): void {
    const route: Route = routes[name]
    const parts = route.path.split('/').slice(1)
    const params = parts.filter((part) => part.startsWith(':')).map((part) => part.slice(1))
    const leaf = { name, params }
    const methods = route.method === '*' ? proxied : [route.method]
    let node = this.#root
    for (const part of parts) {
      if (part === '*') break
      const next: Node = (part.startsWith(':') ? node.param : node.literals.get(part)) ?? newNode()
      if (part.startsWith(':')) node.param = next
      else node.literals.set(part, next)
      node = next
    }
    for (const method of methods) (parts.at(-1) === '*' ? node.rests : node.ends).set(method, leaf)
  }
}

function newNode(): Node {
  return { literals: new Map(), param: undefined, ends: new Map(), rests: new Map() }
}

function matched({ name, params }: Leaf, values: readonly string[], rest?: readonly string[]): Match {
  const entries = params.map((param, index) => [param, values[index] ?? ''] as const)
  // The rest is a program's to understand, so it is handed on as it came.
  return { name, route: routes[name], params: Object.fromEntries(rest ? [...entries, ['*', rest.join('/')] as const] : entries) }
}

/** One part of a path. What could lead elsewhere is none. */
function decoded(part: string): string {
  let text: string
  try {
    text = decodeURIComponent(part)
  } catch {
    throw new HttpError(400, 'path: has a % that is no character')
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused here
  if (text === '' || text === '.' || text === '..' || text.length > 1000 || /[/\\\u0000-\u001f\u007f]/.test(text))
    throw new HttpError(400, 'path: has a part that is no name')
  return text
}
