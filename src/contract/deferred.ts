import type * as z from 'zod'

/**
 * A schema that is made when something of it is first asked for. Making one takes longer than a command takes to parse with it, and a command uses few of those that
 * its modules have. For schemas at the door only: one that others are made of is asked at once.
 */
export function deferred<Schema extends z.ZodType>(make: () => Schema): Schema {
  let made: Schema | undefined
  const schema = (): Schema => (made ??= make())
  return new Proxy({} as Schema, {
    get: (_, key): unknown => Reflect.get(schema(), key),
    set: (_, key, value) => Reflect.set(schema(), key, value),
    has: (_, key) => Reflect.has(schema(), key),
    getPrototypeOf: () => Reflect.getPrototypeOf(schema()),
  })
}
