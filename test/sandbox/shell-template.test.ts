import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine/engine.js'
import { CommandError, Sandbox } from '../../src/sandbox/index.js'
import { rejectionOf } from '../engine/collect.js'
import { createPlainEngine, PlainDriver } from '../engine/plain-driver.js'

let platform: Engine
let sandbox: Sandbox

beforeAll(async () => {
  platform = createPlainEngine(new PlainDriver())
  sandbox = await Sandbox.create({ platform })
})
afterAll(() => platform[Symbol.asyncDispose]())

/** What can be said in bytes and is one argument. */
const word = fc
  .oneof(fc.string({ unit: 'binary', maxLength: 60 }), fc.stringMatching(/^[ '"\\$`!*?~#&|;<>(){}[\]\n\t%=-]{0,20}$/))
  .filter((text) => !text.includes('\0'))

describe('a command with values', () => {
  test('has each of them as one word, whatever it holds', async () => {
    await fc.assert(
      fc.asyncProperty(word, async (text) => {
        const { stdout } = await sandbox.$`printf %s ${text}`
        expect(stdout).toBe(text)
      }),
      { numRuns: 150 },
    )
  })

  test('has a word for each item of an array, and none for an empty one', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(word, { maxLength: 6 }), async (words) => {
        const { stdout } = await sandbox.$`printf '%s\0' begin ${words} end`
        expect(stdout.split('\0')).toEqual(['begin', ...words, 'end', ''])
      }),
      { numRuns: 60 },
    )
  })

  test('joins a value to what stands beside it, and leaves the rest to the shell as it is written', async () => {
    const name = 'it\'s "so" $HOME'
    expect(await sandbox.$`printf '[%s]' --name=${name}.txt ${1}${-2.5} "a b" 'c\'\''d' | tr a-z A-Z`.text()).toBe(
      '[--NAME=IT\'S "SO" $HOME.TXT][1-2.5][A B][C\\\'D]',
    )
    expect(await sandbox.$`echo one; echo; echo "$((1 + 2))" # ${'x'.length > 5 ? '' : 'y'}`.catch((error: unknown) => error)).toMatchObject({
      code: 'invalid',
    })
    expect(await sandbox.$`printf '\\.\t%s\n' ${'x'}`.lines()).toEqual(['\\.\tx'])
  })

  test.each([
    ['inside double quotes', () => sandbox.$`echo "${'$(id)'}"`],
    ['inside single quotes', () => sandbox.$`echo '${'x'}'`],
    ['inside a command in double quotes', () => sandbox.$`echo "$(cat ${'x'})"`],
    ['in a comment', () => sandbox.$`true # ${'\nid'}`],
    ['after $', () => sandbox.$`echo $${'\\n'}`],
    ['after <<', () => sandbox.$`cat <<END\n${'$(id)'}\nEND`],
  ])('refuses a value %s, where it would not be one word', async (_, call) => {
    expect(await rejectionOf(call())).toMatchObject({ code: 'invalid', message: expect.stringContaining('value 1 stands') })
  })

  test.each([[undefined], [null], [true], [{}], [() => 'x'], [Number.NaN], [['a', ['b']]], ['a\0b'], ['\ud800'], [Symbol('x')], [1n]])(
    'refuses %s as a value',
    async (value) => {
      expect(await rejectionOf(sandbox.$`echo ${value as string}`)).toMatchObject({ code: 'invalid', message: expect.stringMatching(/^value 1: /) })
    },
  )

  test('that does not exit with 0 rejects with its result, unless it may', async () => {
    const error = await rejectionOf(sandbox.$`echo out; echo 'no such thing' >&2; exit ${3}`)
    expect(error).toBeInstanceOf(CommandError)
    expect(error).toMatchObject({ message: expect.stringMatching(/: exited with 3: no such thing$/), result: { stdout: 'out\n', exitCode: 3 } })
    expect(await sandbox.$`exit 3`.nothrow()).toMatchObject({ exitCode: 3, stdout: '', stderr: '' })
    expect(await rejectionOf(sandbox.$`kill -9 $$`)).toMatchObject({ result: { exitCode: undefined, outcome: { kind: 'signaled', signal: 'SIGKILL' } } })
  })

  test('runs where and with what it is told to, and says what it printed as text and as lines', async () => {
    const command = sandbox.$`pwd; echo $A $B; echo`.cwd('/usr').env({ A: 'one' }).env({ B: 'two' })
    const result = await command
    expect([result.text(), result.lines()]).toEqual(['/usr\none two', ['/usr', 'one two', '']])
    expect(() => command.nothrow()).toThrowError(expect.objectContaining({ code: 'conflict' }))
    expect(await sandbox.$`true`.lines()).toEqual([])
    expect(await rejectionOf(sandbox.$`true`.cwd('relative'))).toMatchObject({ code: 'invalid' })
  })
})
