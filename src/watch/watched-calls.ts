/** The same object, of whose calls the failures are noted. Everything that is no promise is handed on as it is: streams are nobody's but the caller's. */
export function watchedCalls<Facet extends object>(facet: Facet, name: string, onFailure: (call: string, error: unknown) => void): Facet {
  const calls = new Map<PropertyKey, unknown>()
  return new Proxy(facet, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== 'function' || typeof key !== 'string') return value
      const known = calls.get(key)
      if (known) return known
      const watched = (...args: readonly unknown[]): unknown => {
        const result: unknown = Reflect.apply(value, target, args)
        if (!(result instanceof Promise)) return result
        return result.catch((error: unknown) => {
          onFailure(`${name}.${key}`, error)
          throw error
        })
      }
      calls.set(key, watched)
      return watched
    },
  })
}
