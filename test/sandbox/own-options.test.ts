import { expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import { withOwnNames } from '../../src/sandbox/own-options.js'

test('an error that is told by the name that the caller knows keeps its code, hint and cause', async () => {
  const error = new SandboxError('unsupported', 'output.limit: is above the ceiling', { hint: 'glovebox policy show' })
  const told = await withOwnNames(() => Promise.reject(error), { 'output.limit': 'output' }).catch((reason: unknown) => reason)
  expect(told).toMatchObject({ code: 'unsupported', message: 'output: is above the ceiling', hint: 'glovebox policy show', cause: error })
})
