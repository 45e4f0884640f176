import { expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import { createVeilMemory } from '../../src/cell/veil-memory.js'

const binds = [
  { source: '/usr', target: '/usr' },
  { source: '/var/cache/a: b', target: '/etc' },
]
const root = { name: 'host', binds, symlinks: [], shell: '/bin/sh', env: {} }
const failure = (said: string) => new SandboxError('unavailable', `the cell did not open: ${said}`)

test('a veil that the kernel refuses is done without from then on, and told by the folder of the host', () => {
  const veils = createVeilMemory()
  expect([veils.learn(failure('launcher: veil /usr: Invalid argument'), root), veils.learn(failure('warden: veil /etc: No such device'), root)]).toEqual([
    true,
    true,
  ])
  expect([...veils.unveilable()]).toEqual(['/usr', '/var/cache/a: b'])
  expect(veils.describe()).toBe('/usr: Invalid argument, /var/cache/a: b: No such device')
})

test('what may pass, what has nothing to do with veils and what was learnt already is no reason to try again', () => {
  const veils = createVeilMemory()
  veils.learn(failure('launcher: veil /usr: Invalid argument'), root)
  const others = [
    'launcher: veil /usr: Invalid argument',
    'launcher: veil /usr: Cannot allocate memory',
    'bwrap: veil /usr: Invalid argument',
    'warden: veil /x: Invalid argument',
  ]
  expect(others.map((said) => veils.learn(failure(said), root))).toEqual([false, false, false, false])
  expect(veils.learn(new Error('launcher: veil /etc: Invalid argument'), root)).toBe(false)
  expect(veils.describe()).toBe('/usr: Invalid argument')
})
