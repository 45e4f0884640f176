import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { lifeOf, parseLife } from '../../../src/sys/posture/thread-life.js'

const stat = (state: string, flags: number): string => `7 (a) Z (b) ${state} 1 7 7 0 -1 ${flags} 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0\n`

test('a thread lives until it is a zombie, dead, or about to end', () => {
  expect([stat('S', 0x400000), stat('R', 0x400004), stat('Z', 0x40000c), stat('X', 0x40000c)].map(parseLife)).toEqual([
    { startedAt: '4711' },
    undefined,
    undefined,
    undefined,
  ])
})

test('what the kernel does not say is not guessed', () => {
  expect(() => parseLife('7 (a) S 1')).toThrow('the kernel tells no flags of a thread')
})

test('this process lives, and one that is not there does not', () => {
  expect([lifeOf(process.pid)?.startedAt, lifeOf(2 ** 30)]).toEqual([readFileSync('/proc/self/stat', 'latin1').split(') ')[1]?.split(' ')[19], undefined])
})
