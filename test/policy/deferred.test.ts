import { expect, test } from 'vitest'
import * as z from 'zod'
import { deferred } from '../../src/contract/deferred.js'

function counted() {
  const made = { times: 0 }
  const schema = deferred(() => {
    made.times += 1
    return z.strictObject({ size: z.number() })
  })
  return { made, schema }
}

test('is made when it is first asked for, and once', () => {
  const { made, schema } = counted()
  const above = z.strictObject({ inner: schema })
  expect(made.times).toBe(0)
  expect(schema.parse({ size: 1 })).toEqual({ size: 1 })
  expect(above.parse({ inner: { size: 2 } })).toEqual({ inner: { size: 2 } })
  expect(made.times).toBe(1)
})

test('is in everything as if it had been made at once', () => {
  const { schema } = counted()
  const plain = z.strictObject({ size: z.number() })
  const shown = (one: z.ZodType) => one.safeParse({ size: 'x', more: 1 }).error?.issues
  expect(shown(schema)).toEqual(shown(plain))
  expect(shown(schema.optional())).toEqual(shown(plain.optional()))
  expect(shown(z.strictObject({ size: schema }))).toEqual(shown(z.strictObject({ size: plain })))
  expect(z.toJSONSchema(schema)).toEqual(z.toJSONSchema(plain))
  expect(Object.keys(schema.shape)).toEqual(['size'])
  expect([schema instanceof z.ZodObject, schema instanceof z.ZodString, 'parse' in schema]).toEqual([true, false, true])
})
