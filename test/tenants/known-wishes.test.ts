import { describe, expect, test } from 'vitest'
import type { Policy } from '../../src/contract/policy.js'
import { Secret } from '../../src/contract/secret.js'
import type { SpecInput } from '../../src/contract/spec.js'
import { KnownWishes } from '../../src/tenants/known-wishes.js'

function counted() {
  const planned: SpecInput[] = []
  const wishes = new KnownWishes((spec) => {
    planned.push(spec)
    if (spec.name === 'bad') throw new Error('bad')
    return { cpus: planned.length, memory: 0, disk: 0 }
  })
  return { planned, wishes }
}

describe('what a spec takes', () => {
  test('is worked out once for as long as the policy is the same', () => {
    const { planned, wishes } = counted()
    const policies = [{}, {}] as Policy[]
    const cpus = [0, 0, 1, 1].map((index) => wishes.of({ limits: { memory: '64m' } }, policies[index]).cpus)
    expect([cpus, planned.length]).toEqual([[1, 1, 2, 2], 2])
  })

  test('is another for another spec, however little differs', () => {
    const { wishes } = counted()
    const specs: SpecInput[] = [{}, { limits: {} }, { limits: { memory: 1 } }, { limits: { memory: '1' } }]
    expect(specs.map((spec) => wishes.of(spec, undefined).cpus)).toEqual([1, 2, 3, 4])
  })

  test('is worked out each time where a text does not tell all of the spec, and where that fails', () => {
    const { planned, wishes } = counted()
    const secret = (value: string): SpecInput => ({ env: { A: new Secret(value) } }) as unknown as SpecInput
    for (const spec of [secret('one'), secret('two'), { name: 'x'.repeat(3000) }, { name: 'x'.repeat(3000) }]) wishes.of(spec, undefined)
    for (let times = 0; times < 2; times++) expect(() => wishes.of({ name: 'bad' }, undefined)).toThrow('bad')
    expect(planned).toHaveLength(6)
  })

  test('is forgotten, the oldest first, when there are more than a hundred', () => {
    const { planned, wishes } = counted()
    for (let number = 0; number <= 100; number++) wishes.of({ name: `n${number}` }, undefined)
    wishes.of({ name: 'n100' }, undefined)
    wishes.of({ name: 'n0' }, undefined)
    expect(planned).toHaveLength(102)
  })
})
