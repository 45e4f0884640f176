import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LinedSandbox, openLined } from './lined.js'
import { pythonPrograms, unplaced } from './python-programs.js'

const python = '/usr/bin/python3'
/** What an interpreter reads when it starts: a run that has it is never forked from one that is there. */
const started = { PYTHONNOUSERSITE: '' }

let lined: LinedSandbox
beforeAll(async () => {
  // Where nothing holds processors there is nothing to be raised, and no such limit can be stated.
  lined = await openLined(process.getuid?.() === 0 ? { limits: { cpus: 2 } } : {})
  await lined.sandbox.ensureZygote({ language: 'python', imports: ['json', 'random', 'threading', 'multiprocessing'] })
})
afterAll(() => lined[Symbol.asyncDispose]())

describe('a fork of a zygote does what a python3 does that was just started', () => {
  test.for(Object.entries(pythonPrograms))('%s', async ([, code]) => {
    const forked = await lined.run([python, '-c', code, 'a b', 'é'])
    const fresh = await lined.run([python, '-c', code, 'a b', 'é'], { env: started })
    expect(unplaced(forked)).toEqual(unplaced(fresh))
  })

  test('with none of the modules that the zygote itself needs, and without a variable of its', async () => {
    const code = 'import sys, os; print([name for name in ("ctypes", "_glovebox", "atexit", "glovebox") if name in sys.modules], sorted(os.environ))'
    const { out } = await lined.run([python, '-c', code])
    expect(out).toBe("[] ['HOME', 'LANG', 'PATH', 'TERM', 'USER']\n")
  })

  test('with input', async () => {
    const process = await lined.sandbox.startLined({ command: [python, '-c', 'import sys; print(sys.stdin.read().upper())'], stdin: true }, undefined)
    await process.write(Buffer.from('hello'))
    await process.endInput()
    let said = ''
    for await (const { bytes } of process.output) said += Buffer.from(bytes).toString()
    expect(said).toBe('HELLO\n')
  })

  test.for(['LD_PRELOAD', 'OMP_NUM_THREADS', 'MALLOC_ARENA_MAX'])('not where %s is stated, which is read when a program is loaded', async (name) => {
    const isForked = [python, '-c', 'import sys; print("json" in sys.modules)']
    expect((await lined.run(isForked, { env: { [name]: '4' } })).out).toBe('False\n')
    expect((await lined.run(isForked, { env: { [`A_${name}`]: '4' } })).out).toBe('True\n')
  })

  test('with a file, and with one that is not there', async () => {
    const file = '/usr/lib/python3/dist-packages/../../python3.11/this.py'
    const there = await lined.run([python, file])
    expect(there.out === '' ? there.err : there.out).toMatch(/Zen of Python|can't open file/)
    const [forked, fresh] = [await lined.run([python, 'no.py']), await lined.run([python, 'no.py'], { env: started })]
    expect(forked).toEqual(fresh)
  })

  test('with chance of its own, and the hashes of the zygote', async () => {
    const code = 'import random, secrets, uuid; print(random.random(), secrets.token_hex(8), uuid.uuid4())'
    const [one, other] = [await lined.run([python, '-c', code]), await lined.run([python, '-c', code])]
    expect(one.out.split(' ').filter((word) => other.out.includes(word))).toEqual([])
    const key = [python, '-c', 'import multiprocessing; print(multiprocessing.current_process().authkey.hex())']
    expect((await lined.run(key)).out).not.toBe((await lined.run(key)).out)
    const hash = [python, '-c', 'print(hash("a"))']
    expect((await lined.run(hash)).out).toBe((await lined.run(hash)).out)
  })

  test('and was forked, not started', async () => {
    const code = 'import sys; print("json" in sys.modules)'
    expect((await lined.run([python, '-c', code])).out).toBe('True\n')
    expect((await lined.run([python, '-c', code], { env: started })).out).toBe('False\n')
  })
})
