// Code as users of the library hold it, with the real kernels, on a driver without walls: what walls change is in code-bwrap.test.ts.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import { SandboxError } from '../../src/contract/errors.js'
import type { Platform } from '../../src/contract/platform.js'
import { Sandbox } from '../../src/sandbox/index.js'

const timeout = 60_000
const plain = { driver: 'fake', minTier: 'none' } as const
let platform: Platform
let sandbox: Sandbox

beforeAll(async () => {
  platform = createPlatform()
  sandbox = await Sandbox.create({ ...plain, platform })
}, timeout)
afterAll(() => platform[Symbol.asyncDispose]())

async function count(): Promise<number> {
  let found = 0
  for await (const _ of platform.list()) found += 1
  return found
}

const rejectionOf = (promise: PromiseLike<unknown>): Promise<SandboxError> =>
  Promise.resolve(promise).then(
    () => Promise.reject(new Error('it resolved')),
    (error: SandboxError) => error,
  )

describe('an execution', { timeout }, () => {
  test('awaited, has text, output and results', async () => {
    const { status, text, stdout, stderr, results, truncated, error } = await sandbox.code(
      'import sys\nprint("out")\nprint("err", file=sys.stderr)\ndisplay(1)\n[2]',
    )
    expect({ status, text, stdout, stderr, truncated, error }).toEqual({
      status: 'ok',
      text: '[2]',
      stdout: 'out\n',
      stderr: 'err\n',
      truncated: false,
      error: undefined,
    })
    expect(results.map(({ isMain, text: shown }) => [isMain, shown])).toEqual([
      [false, '1'],
      [true, '[2]'],
    ])
    expect(results[1]?.json).toEqual([2])
  })

  test('with too many results tells how many were dropped', async () => {
    const { status, results, resultsDropped, text } = await sandbox.code('for n in range(10_004): display(n)\n"last"')
    expect([status, results.length, resultsDropped, text]).toEqual(['ok', 10_000, 5, undefined])
    expect((await sandbox.code('1')).resultsDropped).toBe(0)
  })

  test('that is killed while nobody reads tells what was dropped', async () => {
    const flood = 'import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: os.write(1, b"x" * 65536)'
    const execution = await platform.code.execute(sandbox.id, { code: flood, timeout: 300 })
    const { status, outputDropped } = await execution.ended
    let read = 0
    for await (const event of execution.events) if ('bytes' in event) read += event.bytes.length
    expect(status).toBe('timed-out')
    expect(outputDropped).toBeGreaterThan(0)
    expect(read).toBeGreaterThan(2 ** 19)
  })

  test('of code that fails is a value', async () => {
    const { status, error, text } = await sandbox.code('1/0')
    expect([status, error?.name, error?.line, text]).toEqual(['error', 'ZeroDivisionError', 1, undefined])
  })

  test('that asks to end has its code, and the context lives on', async () => {
    await sandbox.code('alive = 1')
    const { status, code } = await sandbox.code('exit(3)')
    expect([status, code, (await sandbox.code('alive')).text]).toEqual(['exit', 3, '1'])
  })

  test('iterated, is its events and at last its end', async () => {
    const told: string[] = []
    for await (const event of sandbox.code('print("a", end="")\ndisplay(1)\nprint("b", end="")\n2')) {
      if ('bytes' in event) told.push(Buffer.from(event.bytes).toString().trim())
      else told.push(event.type === 'result' ? `result ${event.result.text}` : event.type === 'end' ? `end ${event.execution.status}` : event.type)
    }
    expect(told).toEqual(['a', 'result 1', 'b', 'result 2', 'end ok'])
  })

  test('that is left early is interrupted', async () => {
    await sandbox.code('kept = 5')
    for await (const event of sandbox.code('import time\nprint("up", flush=True)\ntime.sleep(600)')) if (event.type === 'stdout') break
    expect((await sandbox.code('kept')).text).toBe('5')
  })

  test('is consumed once', async () => {
    const run = sandbox.code('1')
    await run
    expect((await rejectionOf(run[Symbol.asyncIterator]().next())).code).toBe('conflict')
  })

  test('nobody waits for is no crash of ours', async () => {
    void sandbox.code('1', { context: 'a'.repeat(20) })
    expect((await sandbox.code('1')).status).toBe('ok')
  })

  test('calls back as things come, and what a callback throws ends it', async () => {
    const told: string[] = []
    const note = (kind: string) => (text: string) => void told.push(`${kind} ${text.trim()}`)
    const source = 'import sys\nprint("é", end="")\nprint("e", end="", file=sys.stderr)\n7'
    await sandbox.code(source, { onStdout: note('out'), onStderr: note('err'), onResult: ({ text }) => void told.push(`result ${text}`) })
    expect(told).toEqual(['out é', 'err e', 'result 7'])
    const broken = new Error('mine')
    const onStdout = (): never => {
      throw broken
    }
    expect(await rejectionOf(sandbox.code('import time\nprint("up", flush=True)\ntime.sleep(600)', { onStdout }))).toBe(broken)
    expect((await sandbox.code('1')).text).toBe('1')
  })

  test('rejects with the reason of its signal, and the context keeps its memory', async () => {
    await sandbox.code('kept = 6')
    const leaving = new AbortController()
    const run = sandbox.code('import time\nprint("up", flush=True)\ntime.sleep(600)', {
      signal: leaving.signal,
      onStdout: () => leaving.abort(new Error('enough')),
    })
    expect((await rejectionOf(run)).message).toBe('enough')
    expect((await sandbox.code('kept')).text).toBe('6')
  })

  test('can be interrupted', async () => {
    const run = sandbox.code('import time\ntime.sleep(600)')
    await run.interrupt()
    expect((await run).status).toBe('interrupted')
  })

  test.each(['python', 'javascript'] as const)('interrupted at any moment of its beginning leaves the memory of %s alone', async (language) => {
    await sandbox.code('kept = 5', { language })
    for (const ms of [0, 1, 2, 3, 5, 8]) {
      const run = sandbox.code(language === 'python' ? 'import time; time.sleep(60)' : 'await new Promise((r) => setTimeout(r, 60_000))', { language })
      void run.catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, ms))
      await run.interrupt()
      const { status, isStateKept } = await run
      expect({ ms, status, isStateKept }).toEqual({ ms, status: 'interrupted', isStateKept: true })
    }
    expect((await sandbox.code('kept', { language })).text).toBe('5')
  })

  test('keeps output up to the limit, and tells that there was more', async () => {
    await using small = await Sandbox.create({ ...plain, platform, limits: { output: '1k' } })
    const { stdout, truncated, status } = await small.code('print("x" * 100_000)')
    expect([stdout.length, truncated, status]).toEqual([1024, true, 'ok'])
  })

  test('as JSON is plain, with pictures in base64', async () => {
    const execution = await sandbox.code("class P:\n  def _repr_png_(self): return b'\\x89PNG'\nP()", { artifacts: false })
    expect(execution.results[0]?.png).toEqual(Uint8Array.of(0x89, 0x50, 0x4e, 0x47))
    const { results, status, artifacts } = JSON.parse(JSON.stringify(execution)) as ReturnType<typeof execution.toJSON>
    expect([results[0]?.data['image/png'], status, artifacts]).toEqual(['iVBORw==', 'ok', []])
  })
})

describe('input', { timeout }, () => {
  const source = '(input("a "), input("b "))'

  test('is a text, or lines, and then the end', async () => {
    expect((await sandbox.code(source, { input: 'x\ny\n' })).text).toBe("('x', 'y')")
    expect((await sandbox.code(source, { input: ['x', 'y'] })).text).toBe("('x', 'y')")
    expect((await sandbox.code(source, { input: 'x' })).error?.name).toBe('EOFError')
  })

  test('is what a callback says', async () => {
    const prompts: string[] = []
    const onInput = (prompt: string): string => `${prompts.push(prompt)}`
    expect((await sandbox.code(source, { onInput })).text).toBe("('1', '2')")
    expect(prompts).toEqual(['a ', 'b '])
  })

  test('of a line that is too long is refused, and costs no memory of the context', async () => {
    await sandbox.code('kept = 5')
    const refused = await rejectionOf(sandbox.code('input()', { onInput: () => 'a'.repeat(2 ** 24 + 1) }))
    expect([refused.code, refused.message]).toEqual(['invalid', 'line: must have at most 16777216 bytes, has 16777217'])
    expect((await sandbox.code('kept')).text).toBe('5')
  })

  test('is asked for by events', async () => {
    const run = sandbox.code('input("name? ")', { input: true })
    let text: string | undefined
    for await (const event of run) {
      if (event.type === 'ask') await run.answer(`to ${event.prompt}`)
      if (event.type === 'result') text = event.result.text
    }
    expect(text).toBe("'to name? '")
  })

  test('is refused where nobody said anything of it', async () => {
    expect((await sandbox.code('input()')).status).toBe('error')
  })
})

describe('artifacts', { timeout }, () => {
  test('can be downloaded, and are files of the sandbox', async () => {
    const { artifacts } = await sandbox.code('open("a.bin", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n")')
    expect(artifacts.map(({ change, size, mime }) => [change, size, mime])).toEqual([['created', 8, 'image/png']])
    expect(await artifacts[0]?.download()).toEqual(await sandbox.files.readBytes(artifacts[0]?.path ?? ''))
  })

  test('are not looked for where nobody wants them', async () => {
    const { artifacts, artifactsMissing } = await sandbox.code('open("b.txt", "w").write("1")', { artifacts: false })
    expect([artifacts, artifactsMissing]).toEqual([[], undefined])
  })

  test('of a workspace that is too large are missing, and it says why', async () => {
    await using large = await Sandbox.create({ ...plain, platform })
    await large.code('import os\nfor n in range(10_050): open(f"f{n}", "w").close()', { artifacts: false })
    const { artifacts, artifactsMissing } = await large.code('open("one", "w").write("1")')
    expect([artifacts, artifactsMissing]).toEqual([[], 'the workspace has more than 10000 files and folders'])
  })
})

describe('Sandbox.code', { timeout }, () => {
  test('runs once, leaves no sandbox, and keeps the artifacts', async () => {
    const before = await count()
    const { text, artifacts } = await Sandbox.code('open("a.txt", "w").write("kept")', { platform, sandbox: plain })
    expect(text).toBe('4')
    expect(Buffer.from((await artifacts[0]?.download()) ?? []).toString()).toBe('kept')
    expect(await count()).toBe(before)
  })

  test('that fails leaves none either', async () => {
    const before = await count()
    expect((await rejectionOf(Sandbox.code('1', { platform, sandbox: plain, timeout: -1 }))).code).toBe('invalid')
    for await (const event of Sandbox.code('print(1, flush=True)\nwhile True: pass', { platform, sandbox: plain })) if (event.type === 'stdout') break
    expect(await count()).toBe(before)
  })
})

describe('what is wrong', { timeout }, () => {
  const wrong: readonly (readonly [string, object, RegExp])[] = [
    ['a language that there is not', { language: 'ruby' }, /^language: .*python, javascript, typescript, bash/],
    ['a context that is no id', { context: 'mine' }, /^context: /],
    ['a timeout above the limit', { timeout: '1d' }, /^timeout: .*limits\.time/],
    ['a name of a variable with =', { env: { 'A=B': '1' } }, /^env/],
    ['a callback that is none', { onStdout: 'print' }, /^onStdout: expected a function/],
    ['input of another kind', { input: 5 }, /^input: /],
    ['two ways of input', { input: 'a', onInput: () => null }, /^onInput: /],
    ['an option that there is not', { lang: 'python' }, /^lang: is not a known field/],
    ['a signal that is none', { signal: 5 }, /^signal: /],
  ]
  test.each(wrong)('%s is refused by its name', async (_, options, message) => {
    const error = await rejectionOf(sandbox.code('1', options))
    expect(error).toBeInstanceOf(SandboxError)
    expect([error.code, error.message]).toEqual(['invalid', expect.stringMatching(message)])
  })

  test('code that is no text is refused', async () => {
    expect((await rejectionOf(sandbox.code(5 as unknown as string))).message).toMatch(/^code: /)
  })

  test('a context that is not there is not found, and one speaks only its own languages', async () => {
    expect((await rejectionOf(sandbox.code('1', { context: 'a'.repeat(20) }))).code).toBe('not-found')
    const context = await sandbox.contexts.create({ language: 'bash', name: 'shell' })
    expect((await sandbox.code('echo hi', { context })).stdout).toBe('hi\n')
    expect((await rejectionOf(sandbox.code('1', { context, language: 'python' }))).message).toContain('speaks bash, not python')
    expect(await sandbox.contexts.remove(context)).toBe(true)
  })

  test('more than 32 contexts are refused', async () => {
    await using full = await Sandbox.create({ ...plain, platform })
    const made = await Promise.all(Array.from({ length: 32 }, () => full.contexts.create({ language: 'bash' })))
    expect((await rejectionOf(full.contexts.create({ language: 'bash' }))).code).toBe('busy')
    await full.contexts.remove(made[0] ?? '')
    expect((await full.contexts.create({ language: 'bash' })).state).toBe('idle')
  })
})
