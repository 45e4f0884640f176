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

  const evil = 'a[$(id >&2)]'
  test.each([
    ['arithmetic', () => sandbox.$`echo $((${evil}))`],
    ['arithmetic with brackets', () => sandbox.$`echo $(( (1 + 2) * ${evil} ))`],
    ['an arithmetic command', () => sandbox.$`((${evil}))`],
    ['old arithmetic', () => sandbox.$`echo $[${evil}]`],
    ['an arithmetic loop', () => sandbox.$`for ((i = 0; i < ${evil}; i++)); do :; done`],
    ['the index of an array', () => sandbox.$`a[${evil}]=1`],
    ['an expansion', () => sandbox.$(Object.assign([], { raw: ['echo ${X:', '}'] }) as never, evil)],
    ['a comparison, on its left', () => sandbox.$`[[ ${evil} -eq 1 ]]`],
    ['a comparison, on its right', () => sandbox.$`if [[ 1 -ge ${evil} ]]; then :; fi`],
    ['a look for a variable', () => sandbox.$`[[ -v ${evil} ]]`],
    ['let', () => sandbox.$`let ${evil}`],
    ['eval', () => sandbox.$`true && eval echo ${evil}`],
    ['trap', () => sandbox.$`trap ${evil} EXIT`],
    ['printf -v', () => sandbox.$`printf -v ${evil} x`],
    ['declare', () => sandbox.$`declare ${evil}=1`],
    ['declare -i', () => sandbox.$`declare -i x=${evil}`],
    ['unset', () => sandbox.$`unset ${evil}`],
    ['read', () => sandbox.$`read -r ${evil} < /dev/null`],
  ])('refuses a text in %s, where the shell would evaluate it once more', async (_, call) => {
    expect(await rejectionOf(call())).toMatchObject({ code: 'invalid', message: expect.stringMatching(/^value 1 stands/) })
  })

  test('takes whole numbers where numbers are meant, and words where an evaluation is over', async () => {
    const run = (command: ReturnType<typeof sandbox.$>) => command.text()
    expect(await run(sandbox.$`echo $((${5}+1)) $((1-${-5})) $(( (1 + 2) * ${3} ))`)).toBe('6 6 9')
    expect(await run(sandbox.$`echo $((1+1)) ${evil}; export A=${evil} B=${evil}; echo "$A" "$B"`)).toBe(`2 ${evil}\n${evil} ${evil}`)
    expect(
      await run(sandbox.$`printf 'don'\''t [[ -eq' # it's [[
      (echo ${'a'}; (echo ${evil}))`),
    ).toBe(`don't [[ -eqa\n${evil}`)
    expect(await rejectionOf(sandbox.$`echo $((${1.5}))`)).toMatchObject({ code: 'invalid' })
    expect(await rejectionOf(sandbox.$`echo $((${[1, 2]}))`)).toMatchObject({ code: 'invalid' })
  })

  test('is a template, and nothing else', async () => {
    expect(await rejectionOf(sandbox.$('echo' as never))).toMatchObject({ name: 'SandboxError', code: 'invalid' })
    expect(await rejectionOf((sandbox.$ as unknown as () => Promise<void>).call(sandbox))).toMatchObject({ name: 'SandboxError', code: 'invalid' })
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
