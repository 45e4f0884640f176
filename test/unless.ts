import { beforeEach, type TestContext, test } from 'vitest'

/** A test that runs unless there is a reason not to; the report gives the reason. */
export function testUnless(reason: string | false, options: { readonly timeout?: number } = {}) {
  return (name: string, body: (context: TestContext) => unknown): void => {
    test(name, options, async (context) => {
      if (reason !== false) context.skip(reason)
      await body(context)
    })
  }
}

/** For a whole group: every test of it is skipped with this reason. */
export function skipGroup(reason: string | false): void {
  beforeEach((context) => {
    if (reason !== false) context.skip(reason)
  })
}
