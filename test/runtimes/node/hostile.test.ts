// What code can do to the interpreter that it runs in: the next execution works, whatever it was.
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Kernel } from '../kernel.js'

let kernel: Kernel
beforeAll(async () => {
  kernel = await Kernel.start('node')
  await kernel.execute('globalThis.kept = 41')
})
afterAll(async () => {
  await kernel[Symbol.asyncDispose]()
})

const works = async () => {
  const { status, stdout, stderr, results } = await kernel.execute('console.log("out"); console.error("err"); kept + 1')
  expect({ status, stdout, stderr, text: results[0]?.data['text/plain'] }).toEqual({ status: 'ok', stdout: 'out\n', stderr: 'err\n', text: '42' })
}

test.each([
  ['closes descriptors', 'for (let fd = 0; fd < 40; fd++) try { require("fs").closeSync(fd) } catch {}'],
  ['closes them in other ways', 'const { close } = await import("fs"); for (let fd = 0; fd < 10; fd++) await new Promise((done) => close(fd, done))'],
  ['ends stdout', 'process.stdout.end(); process.stdout.destroy(); process.stderr.end()'],
  ['replaces what prints', 'process.stdout.write = () => { throw 1 }; console.log = null; globalThis.console = 5; process.stderr.write = undefined'],
  ['replaces streams', 'Object.defineProperty(process, "stdout", { value: 5, configurable: true })'],
  ['breaks prototypes', 'const { push } = Array.prototype; for (const name of ["map", "filter", "join", "slice"]) Array.prototype[name] = () => { throw 1 }'],
  [
    'breaks more of them',
    'Object.prototype.toString = null; Function.prototype.call = null; Map.prototype.get = null; RegExp.prototype.exec = null; String.prototype.replace = null',
  ],
  ['replaces intrinsics', 'globalThis.JSON = null; globalThis.Reflect = null; globalThis.Uint8Array = null; globalThis.Buffer = 5; globalThis.Symbol = null'],
  ['replaces promises', 'Promise.prototype.then = () => { throw 1 }; globalThis.Promise = null'],
  ['deletes globals', 'for (const name of Object.getOwnPropertyNames(globalThis)) if (name !== "kept") try { delete globalThis[name] } catch {}'],
  ['poisons setters', 'Object.defineProperty(Object.prototype, "type", { set() { throw 1 }, configurable: true }); delete Object.prototype.type'],
  ['listens to everything', 'process.on("uncaughtException", () => {}); process.removeAllListeners(); process.emit("exit")'],
  ['prints our marks', 'console.log("\\x1e00000000000000000000000000000000:1\\x1edone - 2\\n{}")'],
  ['throws something odd', 'throw { toString() { throw 1 }, get stack() { throw 2 } }'],
  ['throws a proxy', 'throw new Proxy(new Error("x"), { get() { throw 1 }, getPrototypeOf() { throw 2 } })'],
  ['formats stacks', 'Error.prepareStackTrace = () => { throw 1 }; throw new Error("x")'],
  ['rejects and nobody cares', 'Error.prepareStackTrace = undefined; setTimeout(() => { throw new Error("late") }, 1); 0'],
])('code that %s', async (_, source) => {
  await kernel.execute(source)
  await works()
})

test('an interrupt ends whatever runs, and keeps the state', async () => {
  await using own = await Kernel.start('node')
  await own.execute('globalThis.kept = { list: [1] }')
  const sources = [
    'while (true) {}',
    'await new Promise(() => {})',
    'await null; for (;;);',
    'try { for (;;); } catch { } finally { console.log("finally") }',
    'for (;;) await null',
    'await new Promise(() => setTimeout(() => { for (;;); }, 1))',
    'require("child_process").execSync("sleep 1000")',
    'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)',
    '/(a+)+b/.test("a".repeat(50))',
    '({ [Symbol.for("nodejs.util.inspect.custom")]() { for (;;); } })',
    '({ toJSON() { for (;;); } })',
    'process.on("SIGINT", () => {}); for (;;);',
  ]
  for (const source of sources) {
    let isSent = false
    const onOutput = (printed: string) => {
      if (isSent || !printed.includes('begun\n')) return
      isSent = true
      setTimeout(() => own.interrupt(), 20)
    }
    const { error } = await own.execute(`console.log("begun");${source}`, { onOutput })
    expect([source, error?.name]).toEqual([source, 'KeyboardInterrupt'])
    expect(await own.text('kept.list.push(2) && kept')).toMatch(/^\{\s+list: \[\s+1, 2/)
  }
}, 120_000)

test('an interrupt between executions does nothing', async () => {
  for (let times = 0; times < 5; times++) {
    kernel.interrupt()
    await works()
  }
})

test('what is thrown in a timer is told, and ends nothing but the code that waits for it', async () => {
  await using own = await Kernel.start('node')
  await own.execute('let armed; const stray = setInterval(() => { if (armed) { clearInterval(stray); armed(); throw new Error("stray") } }, 1)')
  const told = await own.execute('await new Promise((resolve) => { armed = () => setTimeout(resolve, 5) })')
  expect([told.status, told.stderr]).toEqual(['ok', expect.stringContaining('Uncaught Error: stray')])
  const rejected = await own.execute('await new Promise(() => { Promise.reject(new TypeError("mine")) })')
  expect(rejected.error).toMatchObject({ name: 'TypeError', value: 'mine', line: 1 })
})

test('timers go on between executions, and workers and children print in order', async () => {
  await using own = await Kernel.start('node')
  await own.execute('let ticks = 0; const timer = setInterval(() => ticks++, 1)')
  expect(await own.text('const seen = ticks; await new Promise((resolve) => setTimeout(resolve, 30)); clearInterval(timer); ticks > seen')).toBe('true')
  const child = await own.execute('console.log(1); require("child_process").execSync("echo 2; echo e >&2", { stdio: "inherit" }); console.log(3)')
  expect([child.stdout, child.stderr]).toEqual(['1\n2\n3\n', 'e\n'])
  const worker = 'new (require("worker_threads").Worker)("console.log(\'in it\')", { eval: true })'
  expect(
    (await own.execute(`await new Promise((resolve) => ${worker}.on("exit", resolve)); await new Promise((resolve) => setTimeout(resolve, 50))`)).stdout,
  ).toBe('in it\n')
  const mixed = await own.execute('for (let n = 0; n < 50; n++) (n % 2 ? console.error : console.log)(n)')
  expect(mixed.order).toEqual(Array.from({ length: 50 }, (_, n) => `${n % 2 ? 'stderr' : 'stdout'} ${n}\n`))
})

test('input is asked for, ends, or is refused', async () => {
  await using own = await Kernel.start('node')
  const asked = await own.execute('const name = await input("who? "); const end = await prompt(); [name, end]', { answers: ['me', null] })
  expect([asked.order, asked.results[0]?.data['text/plain']]).toEqual([['ask who? ', 'ask ', 'result'], "[ 'me', null ]"])
  expect(await own.text('await input()')).toBe('Error: input was refused: this execution has nobody to ask')
})

test('variables of the environment are there for one execution', async () => {
  await using own = await Kernel.start('node', { env: { PATH: process.env['PATH'], STAYS: 'old' } })
  expect(await own.text('process.env.STAYS + process.env.MINE', { env: { STAYS: 'new', MINE: 'x=y' } })).toBe("'newx=y'")
  expect(await own.text('process.env.STAYS + process.env.MINE')).toBe("'oldundefined'")
})

test('large, broken and random source is answered', async () => {
  await using own = await Kernel.start('node')
  expect(await own.text(`"${'x'.repeat(10 * 2 ** 20)}".length`)).toBe('10485760')
  expect((await own.execute(Buffer.from([0x27, 0xff, 0xfe, 0x27]))).status).toBe('ok')
  expect((await own.execute('('.repeat(100_000))).status).toBe('error')
  const words = [
    'let ',
    'const ',
    'await ',
    'import ',
    'class ',
    'function ',
    '{',
    '}',
    '(',
    ')',
    '=>',
    '`',
    '"',
    '\n',
    'a',
    '=',
    ';',
    '1',
    '/',
    '${',
    'export ',
    '...',
    '[',
    ']',
    '#',
    '\u2028',
  ]
  const token = fc.constantFrom(...words)
  const sources = fc.sample(
    fc.oneof(
      fc.string({ maxLength: 60 }),
      fc.array(token, { maxLength: 30 }).map((parts) => parts.join('')),
    ),
    100,
  )
  for (const [index, source] of sources.entries()) {
    const language = index % 4 === 0 ? { language: 'typescript' } : {}
    expect(['ok', 'error', 'exit']).toContain((await own.execute(source, language)).status)
  }
  const secret = randomBytes(4).toString('hex')
  expect(await own.text(`"${secret}"`)).toBe(`'${secret}'`)
}, 180_000)
