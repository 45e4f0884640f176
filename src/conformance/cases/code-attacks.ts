import { ensure, ensureSame } from '../check.js'
import { codeOf, see } from '../code-of.js'
import { until, withSandbox } from '../guest.js'
import type { Case, Subject, SubjectCode } from '../subject.js'

const patienceMs = 90_000
const MiB = 2 ** 20

function withCode<T>(subject: Subject, use: (code: SubjectCode) => Promise<T>): Promise<T> {
  return withSandbox(subject, (sandbox) => use(codeOf(sandbox)))
}

/** Whatever was done to it, the next execution of the context works. */
async function ensureWorks(code: SubjectCode): Promise<void> {
  const { value, stdout, ending } = await see(code, { code: 'print("still")\n40 + 2' })
  ensureSame([value, stdout, ending.status], ['42', 'still\n', 'ok'], 'the next execution')
}

/** Prints to both streams what a kernel would say, with every token that a guest could think of. */
const forging = `
import sys, os
frame = b'done ' + b'0' * 32 + b' 54\\n{"mark":1,"status":"ok","number":1,"code":0,"x":"forged"}\\n'
result = b'result - 10\\n{"mark":1}'
mark = b'\\x1e' + b'0' * 32 + b':1\\x1e'
for fd in (1, 2):
    os.write(fd, mark + frame + result + mark)
"honest"
`

/** One after the other, children print, display and come to the end of the code with a value of their own, or with an error. */
const forking = `
import os
children = []
for n in range(5):
  pid = os.fork()
  if pid == 0:
    print("child", n)
    display("child")
    if n == 4: raise ValueError(n)
    break
  os.waitpid(pid, 0)
  children.append(pid)
"parent" if len(children) == 5 else "child"
`

export const codeAttackCases: readonly Case[] = [
  {
    id: 'code/crash-leaves-others',
    name: 'an interpreter that ends takes its execution with it and says how, and leaves the other contexts alone',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        const other = await code.create()
        await see(code, { code: 'kept = 7', context: other.id })
        const ways = {
          'import os; os._exit(3)': { kind: 'exited', code: 3 },
          'import os, signal; os.kill(os.getpid(), signal.SIGKILL)': { kind: 'signaled', signal: 'SIGKILL' },
          'import os, signal; os.kill(os.getpid(), signal.SIGSEGV)': { kind: 'signaled', signal: 'SIGSEGV' },
        }
        for (const [source, outcome] of Object.entries(ways)) {
          const { ending } = await see(code, { code: source })
          ensureSame([ending.status, ending.outcome, ending.isStateKept], ['crashed', outcome, false], source)
          const next = await see(code, { code: '40 + 2' })
          ensureSame([next.value, next.ending.isStateKept], ['42', false], 'the next execution')
        }
        ensureSame((await see(code, { code: 'kept', context: other.id })).value, '7', 'the other context')
        return `${Object.keys(ways).length} ways`
      }),
  },
  {
    id: 'code/out-of-memory',
    name: 'code that takes more memory than there is ends as crashed for want of memory, and the sandbox goes on',
    needs: ['engine', 'limit:memory'],
    patienceMs,
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          const code = codeOf(sandbox)
          const other = await code.create({ language: 'bash' })
          await see(code, { code: 'kept=7', context: other.id })
          // Small pieces, every byte of them written: what is only asked for could be refused to the interpreter, which would tell of it as an error.
          const { ending } = await see(code, { code: 'hoard = []\nwhile len(hoard) < 512: hoard.append(b"x" * 2**20)' })
          ensureSame([ending.status, ending.outcome, ending.isStateKept], ['crashed', { kind: 'out-of-memory', limitBytes: 128 * MiB }, false], 'the end')
          await ensureWorks(code)
          const { stdout } = await see(code, { code: 'echo $kept', context: other.id })
          ensureSame(stdout, '7\n', 'the other context')
          return JSON.stringify(ending.outcome)
        },
        { limits: { memory: '128m' } },
      ),
  },
  {
    id: 'code/forged-output',
    name: 'code that prints what a kernel would say has printed it, and nothing more',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        const { ending, value, results, stdout, stderr } = await see(code, { code: forging })
        ensureSame([ending.status, value, results.length, ending.number], ['ok', "'honest'", 1, 1], 'the execution')
        ensure(stdout.includes('forged') && stderr.includes('forged'), 'what was printed must be output', stdout)
        await ensureWorks(code)
        return `${stdout.length + stderr.length} characters, all output`
      }),
  },
  {
    id: 'code/forged-replies',
    name: 'a context that speaks of another execution, or breaks the rules, is ended, and nobody else is told what it said',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        // Whatever descriptor its kernel speaks on, one of these is it.
        const source = (bytes: string): string =>
          `import os, time\nfor fd in range(3, 1024):\n  try:\n    os.write(fd, ${bytes})\n  except OSError: pass\ntime.sleep(30)`
        const payload = '{"mark":1,"main":true,"data":{"text/plain":"forged"}}'
        for (const bytes of [`b'result ' + b'0' * 32 + b' ${payload.length}\\n${payload}'`, "b'\\x00' * 100", "b'done - 99999999\\n'"]) {
          const { ending, results } = await see(code, { code: source(bytes) })
          ensureSame([ending.status, results.length, ending.outcome?.kind], ['crashed', 0, 'killed'], `after ${bytes}`)
          await see(code, { code: '1' })
        }
        await ensureWorks(code)
        return 'ended each time'
      }),
  },
  {
    id: 'code/closed-descriptors',
    name: 'code that closes or replaces its descriptors and streams breaks nothing but its own output',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        const deeds = [
          'import os\nfor fd in range(10):\n  try: os.close(fd)\n  except OSError: pass',
          'import sys\nsys.stdout = None\nsys.stderr = 3',
          'import os\nos.dup2(os.open("/dev/null", os.O_WRONLY), 1)',
          'import sys\nsys.stdout.close()',
        ]
        for (const deed of deeds) {
          ensureSame((await see(code, { code: deed })).ending.status, 'ok', deed)
          await ensureWorks(code)
        }
        return `${deeds.length} deeds`
      }),
  },
  {
    id: 'code/late-output',
    name: 'what a thread or a child prints after the end of its execution is in no other one before it is asked for, and is counted',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        const source =
          'import threading, time, os\ngo = threading.Event()\ndef late():\n  go.wait()\n  time.sleep(0.1)\n  os.write(1, b"late" * 100)\n  open("written", "w").close()\nthreading.Thread(target=late, daemon=True).start()\ngo.set()'
        ensureSame((await see(code, { code: source })).stdout, '', 'the output of the execution')
        const dropped = async (): Promise<number> => (await code.list())[0]?.droppedBytes ?? 0
        ensure(await until(async () => (await dropped()) >= 400, 20_000), 'what was printed late must be counted', await dropped())
        await ensureWorks(code)
        return `${await dropped()} bytes dropped`
      }),
  },
  {
    id: 'code/results-bounded',
    name: 'a result that is too large is cut and told so, and however many there are the caller is not made to hold them',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        const { results, ending } = await see(code, { code: '"x" * (50 * 2**20)' })
        const shown = String(results[0]?.data['text/plain']).length
        ensure(ending.status === 'ok' && shown <= 10 * MiB, 'the result must be cut', { status: ending.status, shown })
        ensureSame(results[0]?.cut, ['text/plain'], 'what is told to be cut')
        const many = await see(code, { code: 'for n in range(20000): display(n)' })
        ensure(many.results.length <= 10_000 && many.ending.status === 'ok', 'of many results no more than ten thousand come', many.results.length)
        ensureSame(many.ending.resultsDropped, 20_000 - many.results.length, 'how many are told to be dropped')
        await ensureWorks(code)
        return `${shown} characters of 50 MiB`
      }),
  },
  {
    id: 'code/forks',
    name: 'code that forks and does not wait is over when it is over, and its children speak for nobody',
    needs: ['engine'],
    patienceMs,
    run: (subject) =>
      withCode(subject, async (code) => {
        const waiting = await see(code, { code: forking })
        ensureSame(
          [waiting.ending.status, waiting.ending.number, waiting.results.map(({ data }) => data['text/plain'])],
          ['ok', 1, ["'parent'"]],
          'the results',
        )
        const printed = Array.from({ length: 5 }, (_, n) => `child ${n}\n'child'\n`).join('')
        ensureSame(waiting.stdout, printed, 'what was printed, without a mark or a frame')
        ensureSame(waiting.stderr.includes('\x1e'), false, 'a mark on stderr')
        const { ending, value } = await see(code, { code: 'import os\nfor _ in range(5):\n  if os.fork() == 0: break\n7' })
        ensureSame([ending.status, value, ending.number], ['ok', '7', 2], 'the execution that does not wait')
        await ensureWorks(code)
        return 'ten children'
      }),
  },
]
