import { createHash } from 'node:crypto'
import { bytesOf, CaseFailure, ensure, ensureRejects, ensureSame, text } from '../check.js'
import { codeOf, see } from '../code-of.js'
import { withSandbox } from '../guest.js'
import type { Case, Subject, SubjectCode, SubjectSandbox } from '../subject.js'

/** An interpreter may take long to begin where much else is done. */
const patienceMs = 90_000

function withCode<T>(subject: Subject, use: (code: SubjectCode, sandbox: SubjectSandbox) => Promise<T>): Promise<T> {
  return withSandbox(subject, (sandbox) => use(codeOf(sandbox), sandbox))
}

/** Resolves when the code has printed something, so that it runs for certain. */
function whenPrinted(act: () => void): (event: { readonly type: string }) => void {
  return ({ type }) => {
    if (type === 'stdout') act()
  }
}

export const codeCases: readonly Case[] = [
  {
    id: 'code/state-persists',
    name: 'variables, imports and functions of one execution are there in the next, and the value of the last expression is its result',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        const first = await see(code, { code: 'import math\ndef twice(n): return n * 2\nbase = 21' })
        const second = await see(code, { code: 'print("out")\ntwice(base) + math.floor(0.5)' })
        ensureSame([first.ending.status, first.results], ['ok', []], 'the first execution')
        ensureSame([second.stdout, second.value, second.ending.number, second.ending.isStateKept], ['out\n', '42', 2, true], 'the second')
        return `number ${second.ending.number}`
      }),
  },
  {
    id: 'code/errors-are-values',
    name: 'code that fails ends as an error with its name, its value and its line, and the next execution works',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        const { ending } = await see(code, { code: 'x = 1\ny = 0\nx / y' })
        const { name, value, line, traceback } = ending.error ?? {}
        ensureSame([ending.status, name, value, line], ['error', 'ZeroDivisionError', 'division by zero', 3], 'the error')
        ensure(traceback?.includes('x / y') === true, 'the traceback must show the line', traceback)
        ensureSame((await see(code, { code: 'x' })).value, '1', 'what came before the error')
        return `${name}: ${value}`
      }),
  },
  {
    id: 'code/contexts-apart',
    name: 'contexts have memories and working folders of their own, and run at once',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        const [one, two] = [await code.create({ cwd: '/' }), await code.create()]
        const steps = (context: string, mark: string): Promise<unknown> => see(code, { code: `name = ${mark}`, context })
        await Promise.all([steps(one.id, '1'), steps(two.id, '2')])
        const ask = async (context: string): Promise<unknown> => (await see(code, { code: 'import os\n(name, os.getcwd())', context })).value
        const [first, second] = await Promise.all([ask(one.id), ask(two.id)])
        ensureSame(first, "(1, '/')", 'the first context')
        ensure(String(second).startsWith("(2, '") && !String(second).endsWith("'/')"), 'the second must have what is its own', second)
        ensureSame((await see(code, { code: '"name" in globals()' })).value, 'False', 'what the default context has of them')
        ensureSame([await code.remove(one.id), await code.remove(one.id)], [true, false], 'removing one, twice')
        await ensureRejects(see(code, { code: '1', context: one.id }), ['not-found'])
        return `${(await code.list()).length} contexts left`
      }),
  },
  {
    id: 'code/queue-order',
    name: 'executions of one context wait for each other, in the order in which they were asked for',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        await see(code, { code: 'seen = []' })
        const asked = Array.from({ length: 10 }, (_, n) => see(code, { code: `import time\ntime.sleep(${n === 0 ? 0.2 : 0})\nseen.append(${n})\nseen` }))
        const values = (await Promise.all(asked)).map(({ value }) => String(value).split(',').length)
        ensureSame(
          values,
          Array.from({ length: 10 }, (_, n) => n + 1),
          'how many each found',
        )
        return 'ten in a row'
      }),
  },
  {
    id: 'code/order-of-output',
    name: 'output and results come in the order in which the code made them, on both streams',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        const source = 'import sys\nfor n in range(20):\n  print("o", n)\n  print("e", n, file=sys.stderr)\n  display(n)\nprint("end")\n99'
        const { order } = await see(code, { code: source })
        const expected = Array.from({ length: 20 }, (_, n) => `o ${n}\ne ${n}\n[${n}]`).join('')
        ensureSame(order, `${expected}end\n[99]`, 'what came')
        return `${order.length} characters`
      }),
  },
  {
    id: 'code/timeout-keeps-state',
    name: 'an execution whose time is over is interrupted, and its context keeps its memory',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        await see(code, { code: 'kept = 7' })
        const { ending } = await see(code, { code: 'while True: pass', timeout: 300 })
        ensureSame([ending.status, ending.error?.name, ending.isStateKept], ['timed-out', 'KeyboardInterrupt', true], 'the end')
        ensureSame((await see(code, { code: 'kept' })).value, '7', 'what it kept')
        return `after ${ending.wallMs} ms`
      }),
  },
  {
    id: 'code/kill-after-grace',
    name: 'code that an interrupt does not end is killed after a grace, and the next execution has a new interpreter and is told so',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        await see(code, { code: 'lost = 7' })
        const stubborn = 'import time\nwhile True:\n  try:\n    time.sleep(60)\n  except BaseException:\n    pass'
        const { ending } = await see(code, { code: stubborn, timeout: 300 })
        ensureSame([ending.status, ending.isStateKept, ending.outcome?.kind], ['timed-out', false, 'killed'], 'the end')
        const next = await see(code, { code: '"lost" in globals()' })
        ensureSame([next.value, next.ending.isStateKept, (await code.list())[0]?.restarts], ['False', false, 1], 'the next')
        return String(ending.outcome?.kind === 'killed' && ending.outcome.reason)
      }),
  },
  {
    id: 'code/abort-interrupts',
    name: 'a caller that leaves interrupts the code, whether it runs or waits, and the context goes on',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        await see(code, { code: 'kept = 7' })
        const leaving = new AbortController()
        const source = 'print("up", flush=True)\nimport time\ntime.sleep(60)'
        const onEvent = whenPrinted(() => leaving.abort())
        const running = see(code, { code: source }, { signal: leaving.signal, onEvent })
        const waiting = see(code, { code: 'kept = 8' }, { signal: leaving.signal })
        ensureSame((await running).ending.status, 'interrupted', 'the one that ran')
        ensureSame([(await waiting).ending.status, (await waiting).ending.number], ['interrupted', 0], 'the one that waited')
        ensureSame((await see(code, { code: 'kept' })).value, '7', 'what the context kept')
        return 'both interrupted'
      }),
  },
  {
    id: 'code/env',
    name: 'variables of one execution are there in it and in what it starts, and gone in the next',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        const source = 'import os, subprocess\n(os.environ.get("ONCE"), subprocess.run(["sh", "-c", "echo $ONCE"], capture_output=True, text=True).stdout)'
        const first = await see(code, { code: source, env: { ONCE: 'a=b c' } })
        ensureSame(first.value, "('a=b c', 'a=b c\\n')", 'in the execution')
        ensureSame((await see(code, { code: source })).value, "(None, '\\n')", 'in the next')
        return String(first.value)
      }),
  },
  {
    id: 'code/ask',
    name: 'input that code reads is asked for where the caller says so, and refused otherwise',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        const prompts: string[] = []
        const answered = await see(
          code,
          { code: 'name = input("name? ")\nname + input()', input: true },
          {
            onEvent: async (event, answer) => {
              if (event.type !== 'ask') return
              prompts.push(event.prompt)
              await answer(prompts.length === 1 ? 'Ada ' : 'Lovelace')
            },
          },
        )
        ensureSame([answered.value, prompts.length], ["'Ada Lovelace'", 2], 'what was answered')
        const refused = await see(code, { code: 'input("name? ")' })
        ensureSame(refused.ending.status, 'error', 'without input')
        return String(refused.ending.error?.value)
      }),
  },
  {
    id: 'code/artifacts',
    name: 'files that an execution creates or changes in the workspace are told with size, type and hash, and no others',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code, { files }) => {
        await see(code, { code: 'open("old.txt", "w").write("a"); open("same.txt", "w").write("a")' })
        const source = 'import os\nos.mkdir("out")\nopen("out/new.csv", "w").write("a,b")\nopen("old.txt", "w").write("bc")\nopen("same.txt").read()'
        const { ending } = await see(code, { code: source })
        const told = ending.artifacts.map(({ path, ...rest }) => ({ ...rest, name: path.split('/').slice(-2).join('/') }))
        ensureSame(
          told.map(({ name, change, size, mime }) => [name.replace(/^.*old/, 'old'), change, size, mime]),
          [
            ['old.txt', 'changed', 2, 'text/plain'],
            ['out/new.csv', 'created', 3, 'text/csv'],
          ],
          'what was told',
        )
        const hashes = [bytesOf('bc'), bytesOf('a,b')].map((bytes) => createHash('sha256').update(bytes).digest('hex'))
        ensureSame(
          told.map((each) => each.hash),
          hashes,
          'their hashes',
        )
        const read = await files.read(ending.artifacts[1]?.path ?? '')
        let content = ''
        for await (const bytes of read.bytes) content += text(bytes)
        ensureSame(content, 'a,b', 'what can be read of it')
        ensureSame((await see(code, { code: '1' })).ending.artifacts, [], 'of an execution that wrote nothing')
        return `${told.length} files`
      }),
  },
  {
    id: 'code/languages',
    name: 'an unknown language is refused with what there is, and each that there is runs code',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        const asked = see(code, { code: '1', language: 'ruby' as 'python' })
        const { message } = await ensureRejects(asked, ['invalid'])
        ensure(
          ['python', 'javascript', 'typescript', 'bash'].every((name) => message.includes(name)),
          'the refusal must list them',
          message,
        )
        const there = await code.languages()
        const sources = { python: 'print(1+1)', javascript: 'console.log(1+1)', typescript: 'const n: number = 2; console.log(n)', bash: 'echo $((1+1))' }
        const seen = await Promise.all(
          Object.entries(sources).map(async ([language, source]) => {
            if (!there[language as 'python'].available) return `no ${language}`
            const { stdout, ending } = await see(code, { code: source, language: language as 'python' })
            if (stdout !== '2\n') throw new CaseFailure(`${language} must print 2`, `${stdout} ${JSON.stringify(ending)}`)
            return language
          }),
        )
        return seen.join(', ')
      }),
  },
]
