import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LinedSandbox, openLined } from './lined.js'

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

const programs: Record<string, string> = {
  'arguments and names': 'import sys; print(sys.argv, __name__, sys.path, sys.flags, sys.executable, sorted(vars()))',
  'environment and folder':
    'import os; print(os.getcwd(), {name: value for name, value in os.environ.items() if name != "PYTHONNOUSERSITE"}, os.getuid(), os.umask(0))',
  'an exception': 'def f():\n  1/0\nf()',
  'a chain of exceptions': 'try:\n  {}["a"]\nexcept KeyError as e:\n  raise ValueError("no") from e',
  'no Python': 'print("a"\n',
  'an exit status': 'raise SystemExit(3)',
  'an exit status that is no number of C': 'raise SystemExit(2 ** 70)',
  'an exit text': 'import sys; sys.exit("so long")',
  'an exit in a thread that is waited for':
    'import threading, time\ndef f():\n  time.sleep(0.1)\n  print("late")\nthreading.Thread(target=f).start()\nprint("main")',
  'what is to be done at exit': 'import atexit; atexit.register(print, "bye"); print("hi")',
  'a failure at exit': 'import atexit\ndef f():\n  1/0\natexit.register(f); print("hi")',
  'a file that nobody closed': 'out = open("/dev/stdout", "w"); out.write("kept\\n")',
  'a cycle with a finalizer': 'class A:\n  def __del__(self): print("gone")\na = A(); a.self = a',
  'an interrupt': 'import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(5)',
  'a signal': 'import os, signal; os.kill(os.getpid(), signal.SIGTERM)',
  'how signals are': 'import signal; print([(n, signal.getsignal(n)) for n in (2, 13, 15, 17, 25)], signal.pthread_sigmask(0, []))',
  'a hook for exceptions': 'import sys\nsys.excepthook = lambda *a: print("hooked", a[0].__name__)\n1/0',
  'a hook for exceptions that fails': 'import sys\ndef hook(*a): raise ValueError("worse")\nsys.excepthook = hook\n1/0',
  'what /proc says of it': 'import os; print(open("/proc/self/comm").read(), os.stat("/proc/self/environ").st_uid, os.access("/proc/self/environ", os.R_OK))',
  'more processes': 'import multiprocessing\ndef f(n): return n * n\nwith multiprocessing.Pool(2) as pool: print(pool.map(f, range(5)))',
  'another program': 'import subprocess; print(subprocess.run(["echo", "x"], capture_output=True).stdout)',
  'text that is not ASCII': 'print("é€😀"); import sys; print(sys.stdout.encoding, sys.stdin.encoding, sys.getfilesystemencoding())',
  'a stream that is full': 'import sys; sys.stdout = open("/dev/full", "w"); print("lost")',
  limits: 'import resource; print([resource.getrlimit(n) for n in range(10)])',
  threads: 'import threading; print(threading.current_thread(), threading.active_count(), threading.main_thread().native_id == threading.get_native_id())',
}

/** Where things lie in memory is chance. */
const unplaced = (said: object) => JSON.stringify(said).replaceAll(/0x[0-9a-f]{8,}|started \d+/g, '…')

describe('a fork of a zygote does what a python3 does that was just started', () => {
  test.for(Object.entries(programs))('%s', async ([, code]) => {
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
