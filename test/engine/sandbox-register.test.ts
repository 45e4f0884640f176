// What is remembered of sandboxes that are gone.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import { SandboxRegister } from '../../src/engine/sandbox-register.js'

const id = 'a2345678901234567890'

test('a late call is told why a sandbox is gone', async () => {
  const register = new SandboxRegister()
  register.forget(id, new SandboxError('expired', 'its lifetime ran out', { hint: 'a longer one' }))
  await expect(register.find(id)).rejects.toMatchObject({ code: 'expired', message: 'its lifetime ran out', hint: 'a longer one' })
})

test('why a sandbox is gone is remembered without what the error holds', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const register = new SandboxRegister()
  const errors = [1, 2].map(() => new SandboxError('closed', 'it was closed'))
  const [forgotten, control] = errors.map((error) => new WeakRef(error))
  const held = errors[1]
  register.forget(id, errors[0] as SandboxError)
  errors.length = 0
  await nextTurn()
  collect()
  expect([forgotten?.deref(), control?.deref()]).toEqual([undefined, held])
  await expect(register.find(id)).rejects.toMatchObject({ code: 'closed' })
})
