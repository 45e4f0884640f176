import { ensure, ensureExited, ensureRejects, ensureSame } from '../check.js'
import { python, withSandbox } from '../guest.js'
import type { Case, SubjectSandbox } from '../subject.js'
import { cpuMsOf } from '../under-attack.js'

const MiB = 2 ** 20
const engine = ['engine', 'isolates'] as const

/** Burns processor time until its own clock says so, in as many processes as asked for, and prints what it used altogether. */
const burn = `import os, sys, time
seconds, children = float(sys.argv[1]), int(sys.argv[2])
def work():
    x = 0
    while time.process_time() < seconds:
        for _ in range(1000): x += 1
for _ in range(children):
    if os.fork() == 0: work(); os._exit(0)
work()
while True:
    try: os.wait()
    except OSError: break
t = os.times()
print(1000 * (t.user + t.system + t.children_user + t.children_system))`

/** Each child stays until all have been forked: the end of a pipe, which only the parent still holds, tells them. */
const fiveAtOnce = `import os
wait, tell = os.pipe()
for _ in range(5):
    if os.fork() == 0: os.close(tell); os.read(wait, 1); os._exit(0)
os.close(tell)
for _ in range(5): os.wait()`

const hold = (bytes: number): string[] => python(`block = bytearray(b'x') * ${bytes}; print(len(block))`)

async function peakOf(sandbox: SubjectSandbox, bytes: number): Promise<number> {
  const result = await sandbox.run(hold(bytes))
  ensureExited(result)
  return result.usage.memoryPeakBytes
}

function near(seen: number, known: number, slack: { readonly share: number; readonly plus: number }): boolean {
  return Math.abs(seen - known) <= known * slack.share + slack.plus
}

export const accountingCases: readonly Case[] = [
  {
    id: 'accounting/cpu',
    name: 'processor time is told within ten per cent, that of children included',
    needs: ['engine', 'shared-kernel'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const seen: string[] = []
        for (const [seconds, children] of [
          [0.8, 0],
          [0.3, 3],
        ] as const) {
          const result = await sandbox.run(python(burn, String(seconds), String(children)))
          const known = Number(ensureExited(result))
          const told = cpuMsOf(result.usage)
          ensure(near(told, known, { share: 0.1, plus: 0 }), `must be ${Math.round(known)} ms within ten per cent`, result.usage)
          seen.push(`${Math.round(told)} for ${Math.round(known)} ms`)
        }
        return seen.join(', ')
      }),
  },
  {
    id: 'accounting/memory',
    name: 'memory is told within five per cent and 2 MiB',
    needs: ['engine'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const base = await peakOf(sandbox, 1)
        const seen: string[] = []
        for (const size of [32 * MiB, 150 * MiB]) {
          const told = (await peakOf(sandbox, size)) - base
          ensure(near(told, size, { share: 0.05, plus: 2 * MiB }), `must be ${size} bytes within 5 % and 2 MiB`, told)
          seen.push(`${(told / MiB).toFixed(1)} for ${size / MiB} MiB`)
        }
        return seen.join(', ')
      }),
  },
  {
    id: 'accounting/processes',
    name: 'the peak of processes is told exactly, where they are counted',
    needs: [...engine, 'limit:cpuTime', 'limit:processes'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const result = await sandbox.run(python(fiveAtOnce))
        ensureExited(result)
        ensureSame(result.usage.processesPeak, 6, 'the peak of processes')
        return '6'
      }),
  },
  {
    id: 'accounting/sandbox',
    name: "a sandbox's usage is that of its runs together",
    needs: ['engine', 'shared-kernel'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const runs = [await sandbox.run(python(burn, '0.3', '0')), await sandbox.run(python(burn, '0.2', '1')), await sandbox.run(['echo', 'twelve bytes'])]
        const usage = await sandbox.usage?.()
        ensure(usage !== undefined, 'an engine must tell', usage)
        const cpuMs = runs.reduce((sum, run) => sum + cpuMsOf(run.usage), 0)
        const outputBytes = runs.reduce((sum, run) => sum + run.usage.outputBytes, 0)
        ensureSame([usage.runs, usage.outputBytes], [3, outputBytes], 'its runs and what they printed')
        ensure(near(usage.cpuMs, cpuMs, { share: 0.1, plus: 20 }), `must be ${Math.round(cpuMs)} ms within ten per cent`, usage)
        ensure(usage.memoryPeakBytes >= Math.max(...runs.map((run) => run.usage.memoryPeakBytes)) * 0.95, 'its peak must not be below that of a run', usage)
        return `${Math.round(usage.cpuMs)} ms, ${outputBytes} bytes`
      }),
  },
  {
    id: 'limits/live-memory',
    name: 'more memory can be given to a live sandbox, and taken away again, but not what is in use',
    needs: [...engine, 'limit:memory'],
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          ensureSame((await sandbox.run(hold(96 * MiB))).outcome, { kind: 'out-of-memory', limitBytes: 64 * MiB }, 'the outcome before')
          await sandbox.limit?.({ memory: 160 * MiB })
          ensureExited(await sandbox.run(hold(96 * MiB)))
          const holder = await sandbox.start(python(`block = bytearray(b'x') * ${96 * MiB}\nprint('held', flush=True)\nimport time; time.sleep(30)`))
          for await (const _ of holder.output) break
          await ensureRejects(sandbox.limit?.({ memory: 32 * MiB }) ?? Promise.resolve(), ['conflict'])
          await holder.kill()
          await sandbox.limit?.({ memory: 64 * MiB })
          ensureSame((await sandbox.run(hold(96 * MiB))).outcome, { kind: 'out-of-memory', limitBytes: 64 * MiB }, 'the outcome after')
          return 'given, refused to be taken while in use, taken'
        },
        { limits: { memory: 64 * MiB, disk: '2m' } },
      ),
  },
  {
    id: 'limits/live-refused',
    name: 'a live change that is wrong or cannot be had changes nothing',
    needs: engine,
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const change = (limits: object): Promise<void> => sandbox.limit?.(limits) ?? Promise.resolve()
        for (const wrong of [
          { memory: 'lots' },
          { cpus: 0 },
          { processes: -1 },
          { memory: Number.NaN },
          { disk: 2 ** 60 },
          { what: 1 },
          { time: '1s', cpus: -1 },
        ])
          await ensureRejects(change(wrong), ['invalid'])
        ensureExited(await sandbox.run(['sleep', '1.2']))
        return 'each refused, and the time is what it was'
      }),
  },
  {
    id: 'limits/of-a-run',
    name: 'a run can be held to less than its sandbox, never to more',
    needs: [...engine, 'limit:memory', 'limit:processes', 'limit:cpuTime'],
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          const lowered = await sandbox.run(hold(96 * MiB), { limits: { memory: 48 * MiB } })
          ensureSame(lowered.outcome, { kind: 'out-of-memory', limitBytes: 48 * MiB }, 'the outcome of the lowered run')
          ensureExited(await sandbox.run(hold(96 * MiB)))
          const busy = await sandbox.run(python('while True: pass'), { limits: { cpuTime: '200ms' } })
          ensureSame(busy.outcome, { kind: 'timed-out', by: 'cpu', limitMs: 200 }, 'the outcome of the busy run')
          const error = await ensureRejects(sandbox.run(['true'], { limits: { memory: 256 * MiB } }), ['invalid'])
          ensure(error.message.includes('limits.memory'), 'the message must name the field', error)
          return error.message
        },
        { limits: { memory: 160 * MiB, disk: '2m' } },
      ),
  },
]
