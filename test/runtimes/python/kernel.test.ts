import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Kernel } from './kernel.js'

const patience = { timeout: 120_000 }

/** Runs it, interrupts it once it has printed `go`, and tells how it ended. */
async function interrupted(kernel: Kernel, source: string) {
  let isSent = false
  const done = await kernel.execute(source, {
    onOutput: (printed) => {
      if (isSent || !printed.includes('go')) return
      isSent = true
      kernel.interrupt()
    },
  })
  return { name: done.error?.name, line: done.error?.line }
}

/** Waits until no SIGINT is pending for the kernel any more. */
async function taken(kernel: Kernel): Promise<void> {
  const isPending = () =>
    Number.parseInt(/^ShdPnd:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${kernel.child.pid}/status`, 'utf8'))?.[1]?.slice(-8) ?? '0', 16) & 2
  while (isPending()) await new Promise((resolve) => setTimeout(resolve, 1))
}

describe('an interrupt', patience, () => {
  test.each([
    ['of a loop', "print('go')\nwhile True: pass", [1, 2]],
    ['of sleep', "import time\nprint('go')\ntime.sleep(600)", [2, 3]],
    ['of await', "import asyncio\nprint('go')\nawait asyncio.sleep(600)", [2, 3]],
    ['of a function that awaits', "async def nap():\n    await asyncio.sleep(600)\nprint('go')\nawait nap()", [2, 3, 4]],
    ['of a task that computes', "print('go')\nawait asyncio.sleep(0)\nwhile True: pass", [1, 2, 3]],
    ['of a program', "import subprocess\nprint('go')\nsubprocess.run(['sleep', '600'])", [2, 3]],
    [
      'of a thread that is joined',
      "import threading\nt = threading.Thread(target=time.sleep, args=(2,), daemon=True)\nt.start()\nprint('go')\nt.join()",
      [4, 5],
    ],
    ['of a repr that never ends', "class Endless:\n    def __repr__(self):\n        print('go')\n        while True: pass\nEndless()", [3, 4]],
    ['of code that changed what SIGINT does before', "print('go')\nwhile True: pass", [1, 2]],
  ])('%s raises KeyboardInterrupt and keeps the memory', async (what, source, lines) => {
    await using kernel = await Kernel.start()
    await kernel.execute('import time, asyncio, signal; kept = 5')
    if (what.includes('SIGINT')) await kernel.execute('signal.signal(signal.SIGINT, signal.SIG_IGN); signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])')
    const { name, line } = await interrupted(kernel, source)
    expect(name).toBe('KeyboardInterrupt')
    expect(lines).toContain(line)
    expect((await kernel.execute('kept')).results[0]?.data).toEqual({ 'text/plain': '5' })
  })

  test('of a question, which is then not answered', async () => {
    await using kernel = await Kernel.start()
    const done = await kernel.execute("input('?')", { onAsk: () => kernel.interrupt() })
    expect(done.error).toMatchObject({ name: 'KeyboardInterrupt', line: 1 })
    expect((await kernel.execute('input()', { answers: ['again'] })).results[0]?.data).toEqual({ 'text/plain': "'again'" })
  })

  test('lets code that awaits clean up', async () => {
    await using kernel = await Kernel.start()
    await kernel.execute('import asyncio')
    await interrupted(kernel, "try:\n    print('go')\n    await asyncio.sleep(600)\nfinally:\n    cleaned = True")
    expect((await kernel.execute('cleaned')).results[0]?.data).toEqual({ 'text/plain': 'True' })
  })

  test('between executions does nothing', async () => {
    await using kernel = await Kernel.start()
    for (let round = 0; round < 5; round++) {
      kernel.interrupt()
      await taken(kernel)
      expect((await kernel.execute("'fine'")).results[0]?.data).toEqual({ 'text/plain': "'fine'" })
    }
  })
})

/** Sources after which the next execution must be as good as any. */
const unkind: readonly (readonly [string, string])[] = [
  ['closes 0 to 9', 'import os\nfor fd in range(10):\n    try: os.close(fd)\n    except OSError: pass'],
  ['closes 3 to 255', 'import os; os.closerange(3, 256)'],
  ['points 1 and 2 elsewhere', "import os; null = os.open('/dev/null', os.O_WRONLY); os.dup2(null, 1); os.dup2(null, 2)"],
  ['makes 1 non-blocking', 'import os; os.set_blocking(1, False)'],
  ['replaces the streams', 'import sys, io; sys.stdout = sys.stderr = io.StringIO(); sys.stdin = None'],
  ['deletes the streams', 'import sys; del sys.stdout, sys.stderr, sys.stdin'],
  ['closes and detaches the streams', 'import sys; sys.stdout.close(); sys.stderr.detach(); sys.__stdout__ = None'],
  ['reconfigures the streams', "import sys; sys.stdout.reconfigure(encoding='utf-16', write_through=False)"],
  ['shadows builtins', 'print = len = open = isinstance = display = 3'],
  ['deletes builtins', 'import builtins\nfor name in list(vars(builtins)):\n    if not name.startswith("__"): delattr(builtins, name)'],
  ['deletes builtins and fails', 'import builtins\ndel builtins.open, builtins.len, builtins.isinstance, builtins.getattr\n1 / 0'],
  ['clears the modules', 'import sys; sys.modules.clear()'],
  ['clears the path and its finders', 'import sys; sys.meta_path.clear(); sys.path.clear(); sys.path_hooks.clear()'],
  ['takes its builtins away', "globals()['__builtins__'] = {}"],
  ['empties its namespace', 'globals().clear()'],
  ['lowers the limit of recursion', 'import sys; sys.setrecursionlimit(60)'],
  ['removes its folder', 'import os, tempfile; folder = tempfile.mkdtemp(); os.chdir(folder); os.rmdir(folder)'],
  ['traces', 'import sys; sys.settrace(lambda *event: print(event)); sys.setprofile(lambda *event: print(event))'],
  ['sets hooks that fail', 'import sys; sys.excepthook = lambda *_: 1 / 0\n1 / 0'],
  ['forks without waiting', 'import os, time\nif os.fork() == 0: time.sleep(600)'],
  ['forks and fails', 'import os\nchild = os.fork()\nif child: os.waitpid(child, 0)\n1 / 0'],
  [
    'leaves a thread that prints',
    "import threading, time\ndef tick():\n    while True: print('tick', flush=True); time.sleep(0.001)\nthreading.Thread(target=tick, daemon=True).start()",
  ],
  ['prints what looks like frames and marks', `import sys; print('result - 2\\n{}\\x1e' + '0' * 32 + ':1\\x1e'); print('\\x1e' * 10, file=sys.stderr)`],
  ['leaves a cycle of garbage', 'import gc\nclass A:\n    def __del__(self): raise ValueError\na = A(); a.a = a; del a; gc.collect(); gc.disable()'],
  ['raises something very own', 'class E(BaseException): pass\nraise E'],
  ['raises itself', 'e = ValueError(); e.__cause__ = e; raise e'],
  ['has a repr that is no text', 'class A:\n    def __repr__(self): return 5\nA()'],
  ['sets an alarm for later', 'import signal; signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)'],
  ['changes its locale and umask', "import os, locale; os.umask(0o777); locale.setlocale(locale.LC_ALL, 'C')"],
  ['replaces eval and compile', 'import builtins; builtins.eval = builtins.compile = builtins.exec = None'],
  [
    'has a hostile type',
    'class M(type):\n    def __getattribute__(c, n): raise RuntimeError(n)\nclass A(metaclass=M):\n    def __getattribute__(s, n): raise RuntimeError(n)\nA()',
  ],
]

/** Not by names that the code before may have taken. */
const next = "import sys, builtins\nbuiltins.print('out')\nbuiltins.print('err', file=sys.stderr)\nbuiltins.display(builtins.len([1]))\n[6 * 7]"

describe('code that', patience, () => {
  test.each(unkind)('%s leaves the next execution as good as any', async (_, source) => {
    await using kernel = await Kernel.start()
    await kernel.execute(source)
    const done = await kernel.execute(next)
    expect(done).toMatchObject({ status: 'ok', number: 2 })
    // What a thread prints may come between a text and the end of its line.
    expect(done.stdout.replaceAll('tick', '').trim()).toBe('out')
    expect(done.stderr).toBe('err\n')
    expect(done.results.map((result) => result.data['text/plain'])).toEqual(['1', '[42]'])
  })

  test('closes every descriptor ends the kernel, quietly', async () => {
    await using kernel = await Kernel.start()
    kernel.execute('import os; os.closerange(3, 65536)').catch(() => {})
    expect(await kernel.ended).toBe(0)
  })

  test('opens a file in the place of ours gets no frame in it', async () => {
    await using kernel = await Kernel.start()
    const folder = mkdtempSync(join(tmpdir(), 'glovebox-python-'))
    const source = `import os\nos.closerange(3, 65536)\nfor n in range(1030): os.open('${folder}/f', os.O_RDWR | os.O_CREAT)`
    kernel.execute(source).catch(() => {})
    expect(await kernel.ended).toBe(0)
    rmSync(folder, { recursive: true })
  })

  test('ends its process ends the kernel', async () => {
    await using kernel = await Kernel.start()
    kernel.execute('import os; os._exit(5)').catch(() => {})
    expect(await kernel.ended).toBe(5)
  })

  test('crashes the interpreter is told where', async () => {
    await using kernel = await Kernel.start()
    kernel.execute('import ctypes\nctypes.string_at(0)').catch(() => {})
    expect(await kernel.ended).toBe('SIGSEGV')
    expect(kernel.error.bytes.toString()).toMatch(/Fatal Python error: Segmentation fault[^]*File "<code 1>", line 2/)
  })

  test('makes half a gigabyte has it shown without twice the memory', async () => {
    await using kernel = await Kernel.start()
    await kernel.execute("import resource\nlarge = b'x' * 2**29\nbefore = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss")
    const done = await kernel.execute('large')
    expect(done.results[0]?.cut).toEqual(['text/plain'])
    expect((done.results[0]?.data['text/plain'] as string).length).toBeGreaterThan(10_000_000)
    const grown = await kernel.execute('(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024')
    expect(Number(grown.results[0]?.data['text/plain'])).toBeLessThan(200)
  })
})

describe('the kernel', patience, () => {
  test('answers 200 random sources', async () => {
    await using kernel = await Kernel.start()
    let seed = 20_240_229
    const random = (below: number) => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
      return Math.floor((seed / 2 ** 32) * below)
    }
    for (let round = 0; round < 200; round++) {
      const alphabet = round % 2 ? 256 : 96
      const source = Buffer.from(Array.from({ length: random(60) }, () => (alphabet === 256 ? random(256) : random(96) === 95 ? 10 : 32 + random(95))))
      const done = await kernel.execute(source)
      expect(done.number).toBe(round + 1)
    }
    expect((await kernel.execute('1 + 1')).results[0]?.data).toEqual({ 'text/plain': '2' })
  })

  test('tells that a source is not UTF-8, and where', async () => {
    await using kernel = await Kernel.start()
    const done = await kernel.execute(Buffer.from([0x78, 0x0a, 0x22, 0xff, 0x22]))
    expect(done.error).toMatchObject({ name: 'SyntaxError', value: 'the source is not UTF-8: byte 0xff at position 3', line: 2 })
  })

  test('takes ten mebibytes of source', async () => {
    await using kernel = await Kernel.start()
    const done = await kernel.execute(`text = '${'x'.repeat(10 * 2 ** 20)}'\nlen(text)`)
    expect(done.results[0]?.data).toEqual({ 'text/plain': '10485760' })
  })

  test('shortens what errors say', async () => {
    await using kernel = await Kernel.start()
    const { error } = await kernel.execute("raise ValueError('x' * 10_000_000)")
    expect(error?.value.length).toBeLessThanOrEqual(65_536)
    expect(error?.traceback.length).toBeLessThanOrEqual(65_536)
    expect(error?.traceback).toMatch(/^Traceback[^]*characters left out/)
  })

  test('runs what is registered for the end', async () => {
    const kernel = await Kernel.start()
    await kernel.execute("import atexit, threading, time; atexit.register(lambda: print('the end')); threading.Thread(target=time.sleep, args=(600,)).start()")
    expect(await kernel.close()).toBe(0)
    expect(kernel.out.bytes.toString()).toBe('the end\n')
  })

  test('keeps the order of stdout and stderr where code switches between them', async () => {
    await using kernel = await Kernel.start()
    const seen: string[] = []
    for (const [name, stream] of [
      ['out', kernel.out],
      ['err', kernel.error],
    ] as const)
      stream.stream.on('data', (chunk: Buffer) =>
        seen.push(
          ...chunk
            .toString()
            .replaceAll(/\x1e[^\x1e]*\x1e/g, '')
            .split('\n')
            .filter(Boolean)
            .map((line) => `${name} ${line}`),
        ),
      ) // prettier-ignore
    await kernel.execute('import sys\nfor n in range(5):\n    print(n)\n    print(n, file=sys.stderr)')
    expect(seen).toEqual([0, 1, 2, 3, 4].flatMap((n) => [`out ${n}`, `err ${n}`]))
  })

  test('has nothing of its own in the way of code', async () => {
    await using kernel = await Kernel.start()
    const names = await kernel.execute('sorted(globals())')
    expect(names.results[0]?.data['application/json']).toEqual(['__builtins__', '__doc__', '__loader__', '__name__', '__package__', '__spec__'])
    const heavy = await kernel.execute(
      "import sys\n[name for name in ('asyncio', 'inspect', 'ast', 'traceback', 'threading', 'numpy', 'IPython') if name in sys.modules]",
    )
    expect(heavy.results[0]?.data['application/json']).toEqual([])
  })
})

describe('files named like modules of the library', patience, () => {
  const names = ['json', 're', 'os', 'io', 'traceback', 'linecache', 'tokenize', 'asyncio', 'base64', 'select', 'resource', 'glovebox_kernel', 'enum', 'atexit']

  test.each(['the folder of the kernel', 'the folder that is told'])('in %s are for the code, and not for the kernel', async (where) => {
    const folder = mkdtempSync(join(tmpdir(), 'glovebox-python-'))
    mkdirSync(join(folder, 'collections'))
    for (const name of [...names, 'collections/__init__']) writeFileSync(join(folder, `${name}.py`), "own = True\nprint('imported', __name__)\n")
    await using kernel = await Kernel.start(where.includes('told') ? { cwd: folder } : { startIn: folder })
    // os and io are in use before any code is, as in every program.
    const done = await kernel.execute('import json, re, base64\njson.own and re.own and base64.own')
    expect([done.stdout, done.results[0]?.data]).toEqual(['imported json\nimported re\nimported base64\n', { 'text/plain': 'True' }])
    const failed = await kernel.execute('import traceback, linecache\n1 / 0')
    expect(failed.error?.traceback).toMatch(/^Traceback \(most recent call last\):\n {2}File "<code 2>", line 2, in <module>\n {4}1 \/ 0\n/)
    expect((await kernel.execute('async def five(): return 5\nawait five()')).results[0]?.data).toEqual({ 'text/plain': '5' })
    expect((await kernel.execute('import asyncio; asyncio.own')).results[0]?.data).toEqual({ 'text/plain': 'True' })
    expect((await kernel.execute('{"a": [1]}')).results[0]?.data).toEqual({ 'text/plain': "{'a': [1]}", 'application/json': { a: [1] } })
    rmSync(folder, { recursive: true })
  })
})
