import { describe, expect, test } from 'vitest'
import type { Json } from '../../src/contract/posture.js'
import { judge, mismatchError } from '../../src/receipt/index.js'
import { cellPosture, demandsOf, programPosture, seen } from './facts.js'

/** What is said when the kernel has something else. */
function judged(control: string, expected: Json, found: Json) {
  return judge({ expectations: [{ control, value: expected }], posture: { subject: 'cell', observations: [seen(control, found)] } })
}

describe('a posture', () => {
  test('that is as demanded has no mismatch', () => {
    expect(judge({ expectations: demandsOf(cellPosture), posture: cellPosture })).toEqual([])
    expect(judge({ expectations: demandsOf(programPosture), posture: [programPosture] })).toEqual([])
  })

  test('may hold more than was demanded', () => {
    expect(judge({ expectations: [], posture: cellPosture })).toEqual([])
    expect(judged('rlimits', { core: [0, 0] }, { core: [0, 0], files: [4096, 4096] })).toEqual([])
  })

  test('that lacks what was demanded is a mismatch, also when nobody looked at all', () => {
    const expectations = [{ control: 'seccomp', value: { mode: 2 } }]
    const missing = { control: 'seccomp', expected: { mode: 2 }, found: null }
    expect(judge({ expectations, posture: { subject: 'pid 3', observations: [seen('ids', 0)] } })).toEqual([
      { ...missing, subject: 'pid 3', text: 'seccomp of pid 3: was not observed' },
    ])
    expect(judge({ expectations, posture: [] })).toEqual([{ ...missing, subject: 'anything', text: 'seccomp of anything: was not observed' }])
  })

  test('is recorded and not compared where nobody could be asked', () => {
    const asserted = { ...seen('filter', null), evidence: 'asserted' as const }
    expect(judge({ expectations: [{ control: 'filter', value: 'ab' }], posture: { subject: 'pid 3', observations: [asserted] } })).toEqual([])
  })

  test('is compared by every observation there is: one that fits excuses no other', () => {
    const posture = { subject: 'cell', observations: [seen('interfaces', ['lo']), seen('interfaces', ['lo', 'eth0'])] }
    expect(judge({ expectations: [{ control: 'interfaces', value: ['lo'] }], posture }).map(({ text }) => text)).toEqual([
      'interfaces of cell: has eth0 besides',
    ])
  })

  test('of each thread is held to the same', () => {
    const thread = (subject: string, value: Json) => ({ subject, observations: [seen('no-new-privs', value)] })
    const posture = [thread('pid 3', true), thread('pid 3 thread 4', false)]
    expect(judge({ expectations: [{ control: 'no-new-privs', value: true }], posture })).toEqual([
      {
        control: 'no-new-privs',
        subject: 'pid 3 thread 4',
        expected: true,
        found: false,
        text: 'no-new-privs of pid 3 thread 4: is false instead of true',
      },
    ])
  })
})

describe('what is told of a mismatch', () => {
  const mount = (target: string, access: string) => ({ target, type: 'tmpfs', access, nosuid: true })

  test.each<[string, Json, Json, string]>([
    ['a number', 64, null, 'x of cell: is null instead of 64'],
    ['one name of many', { net: 'own', pid: 'own' }, { net: 'host', pid: 'own' }, 'x of cell: net is host instead of own'],
    ['a name below a name', { a: { b: [1, 2] } }, { a: { b: [1, 3] } }, 'x of cell: a b has 3 besides; a b lacks 2'],
    ['a name that is missing', { net: 'own' }, {}, 'x of cell: net is missing'],
    ['a list in another order', [1, 2], [2, 1], 'x of cell: is in another order'],
    ['a row too many', [1], [1, 1], 'x of cell: has 1 besides'],
    [
      'only the mounts that differ, by where they are',
      [mount('/', 'ro'), mount('/usr', 'ro'), mount('/tmp', 'rw')],
      [mount('/', 'rw'), mount('/usr', 'ro'), mount('/host', 'rw')],
      'x of cell: /: access is rw instead of ro; has {"access":"rw","nosuid":true,"target":"/host","type":"tmpfs"} besides; lacks {"access":"rw","nosuid":true,"target":"/tmp","type":"tmpfs"}',
    ],
    ['a few rows of very many', Array.from({ length: 50 }, (_, index) => index), [], 'x of cell: lacks 0; lacks 1; lacks 2; and 47 more'],
  ])('is %s', (_, expected, found, text) => {
    expect(judged('x', expected, found)).toEqual([{ control: 'x', subject: 'cell', expected, found, text }])
  })

  test('is one line of bounded length', () => {
    const [mismatch] = judged('x', 'a', `${'b'.repeat(100_000)}`)
    expect(mismatch?.text.length).toBeLessThan(450)
  })

  test('becomes an error that names the first and the controls of the others', () => {
    const posture = { subject: 'cell', observations: [seen('interfaces', ['eth0']), seen('uid-map', [[0, 0, 1]])] }
    const expectations = [
      { control: 'interfaces', value: ['lo'] },
      { control: 'uid-map', value: [[0, 5, 1]] },
      { control: 'mounts', value: [] },
    ]
    expect(mismatchError(judge({ expectations, posture }))).toMatchObject({
      code: 'not-enforced',
      message: 'interfaces of cell: has eth0 besides; lacks lo (and uid-map, mounts)',
      hint: 'glovebox doctor',
    })
    expect(mismatchError([])).toBeUndefined()
  })
})
