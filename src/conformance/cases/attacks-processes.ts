import { ensure, ensureExited, ensureSame } from '../check.js'
import { python, until, withSandbox } from '../guest.js'
import type { Case, Subject, SubjectResult, SubjectSandbox } from '../subject.js'
import { cpuMsOf, withstand } from '../under-attack.js'

const needs = ['engine', 'isolates', 'limit:processes'] as const
const limit = 32

/** Forks as fast as it can, in every branch, and never gives up. */
const forkLoop = 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass'

/** Each generation leaves its session, its parent and its name behind. */
const doubleFork = `import os, signal
for s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)
while True:
  try:
    if os.fork() == 0:
      os.setsid()
      if os.fork(): os._exit(0)
  except OSError: pass`

/** A shell gives up when a fork is refused; whoever lights the next one does not. */
const shells = `import subprocess
while True:
  try: subprocess.Popen(['sh', '-c', 'bomb() { bomb | bomb & }; bomb'], stderr=subprocess.DEVNULL)
  except OSError: pass`

const threads = `import threading
n, never = 0, threading.Event()
try:
  while n < 2000:
    threading.Thread(target=never.wait, daemon=True).start(); n += 1
except RuntimeError: pass
print(n, flush=True)
import os; os._exit(0)`

/** Its program ends at once; each daemon uses less than what a single process may, and is followed by another. */
const respawning = `import os, time
if os.fork(): os._exit(0)
os.setsid()
while True:
  end = time.process_time() + 0.2
  while time.process_time() < end: pass
  if os.fork(): os._exit(0)`

const stopOthers = `import os, signal
print('ready', flush=True)
end = __import__('time').monotonic() + 60
while __import__('time').monotonic() < end:
  for name in os.listdir('/proc'):
    if not name.isdigit() or int(name) in (1, os.getpid(), os.getppid()): continue
    try: os.kill(int(name), signal.SIGSTOP)
    except OSError: pass`

function bombCase(name: string, command: string[]): Case {
  return {
    id: `attacks/fork-bomb-${name}`,
    name: `a fork bomb (${name}) stays within its processes, ends with its time, and leaves none`,
    needs,
    run: (subject) =>
      withstand(subject, {
        spec: { limits: { processes: limit } },
        command,
        options: { timeout: '3s' },
        judge: (result, sandbox) => judgeBomb(subject, result, sandbox),
      }),
  }
}

async function judgeBomb(subject: Subject, { outcome, usage }: SubjectResult, sandbox: SubjectSandbox): Promise<string> {
  ensureSame(outcome, { kind: 'timed-out', by: 'wall', limitMs: 3000 }, 'the outcome')
  const { processesPeak, hits } = usage
  // A kernel of its own refuses them without a word to anyone.
  const counts = subject.probe.limits.cpuTime.enforced && !subject.probe.ownKernel
  ensure(!counts || (hits.processes !== null && hits.processes > 0), 'the forks that were refused must be counted', usage)
  ensure(processesPeak === null || processesPeak <= limit, 'never more processes than the limit', usage)
  // The limit is free again: a run that was killed is gone with all it had.
  ensureExited(await sandbox.run(python('import os\nfor _ in range(20):\n  if os.fork() == 0: os._exit(0)\nfor _ in range(20): os.wait()')))
  return `timed out; peak ${String(processesPeak)}, refused ${String(hits.processes)}`
}

export const processAttackCases: readonly Case[] = [
  bombCase('shell', python(shells)),
  bombCase('loop', python(forkLoop)),
  bombCase('double-fork', python(doubleFork)),
  {
    id: 'attacks/threads',
    name: 'threads count as processes',
    needs,
    run: (subject) =>
      withstand(subject, {
        spec: { limits: { processes: limit } },
        command: python(threads),
        judge: (result) => {
          const count = Number(ensureExited(result))
          ensure(count > 4 && count < limit, `must get fewer than ${limit} threads`, count)
          return `${count} threads`
        },
      }),
  },
  {
    id: 'attacks/stopped',
    name: 'a program that stops itself ends with its time',
    needs: ['engine'],
    run: (subject) =>
      withstand(subject, {
        spec: {},
        command: python('import os, signal; os.kill(os.getpid(), signal.SIGSTOP)'),
        options: { timeout: '1s' },
        judge: ({ outcome }) => {
          ensureSame(outcome, { kind: 'timed-out', by: 'wall', limitMs: 1000 }, 'the outcome')
          return 'timed out'
        },
      }),
  },
  {
    id: 'attacks/cpus',
    name: 'four busy threads at half a processor get at most 0.55 of the wall time over five seconds',
    needs: ['engine', 'isolates', 'limit:cpus'],
    run: (subject) =>
      withstand(subject, {
        spec: { limits: { cpus: 0.5 } },
        command: python(
          'import os, time\nfor _ in range(2): os.fork()\nend = time.monotonic() + 5\nwhile time.monotonic() < end: pass\nwhile True:\n  try: os.wait()\n  except OSError: break',
        ),
        judge: (result) => {
          ensureExited(result)
          const [cpuMs, { wallMs }] = [cpuMsOf(result.usage), result.usage]
          ensure(cpuMs <= 0.55 * wallMs && cpuMs > 0.05 * wallMs, 'processor time must be at most 0.55 of the wall time, and not nothing', result.usage)
          return `${Math.round(cpuMs)} ms in ${Math.round(wallMs)} ms`
        },
      }),
  },
  {
    id: 'attacks/cpu-time',
    name: 'processor time beyond the limit ends a run as timed out by cpu, whichever of its processes used it',
    needs: ['engine', 'isolates', 'limit:cpuTime'],
    run: (subject) =>
      withstand(subject, {
        spec: { limits: { cpuTime: '500ms', cpus: 1 } },
        // Children whose parent takes no notice of their end, so that nobody adds up what they used but their group.
        command: python(
          'import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True:\n  if os.fork() == 0:\n    end = time.process_time() + 0.05\n    while time.process_time() < end: pass\n    os._exit(0)\n  time.sleep(0.05)',
        ),
        judge: async ({ outcome, usage }, sandbox) => {
          ensureSame(outcome, { kind: 'timed-out', by: 'cpu', limitMs: 500 }, 'the outcome')
          ensure(cpuMsOf(usage) >= 450 && cpuMsOf(usage) < 1000, 'what it used must be near the limit', usage)
          ensureExited(await sandbox.run(['sleep', '1']))
          return `timed out after ${Math.round(cpuMsOf(usage))} ms of processor time`
        },
      }),
  },
  {
    id: 'attacks/cpu-time-daemons',
    name: 'what outlives its program is held to the processor time of its run, however often it forks anew',
    needs: ['engine', 'isolates', 'limit:cpuTime'],
    run: (subject) =>
      withstand(subject, {
        spec: { limits: { cpuTime: '500ms', cpus: 1 } },
        command: python(respawning),
        judge: async (result, sandbox) => {
          ensureExited(result)
          const isEmpty = await until(async () => (await sandbox.usage?.())?.processes === 0, 20_000)
          const used = await sandbox.usage?.()
          ensure(isEmpty, 'nothing of the run may be left once its processor time is used', used)
          ensure(used !== undefined && used.cpuMs < 2000, 'what it used must be near the limit', used)
          ensureExited(await sandbox.run(['true']))
          return `gone after ${Math.round(used.cpuMs)} ms of processor time`
        },
      }),
  },
  {
    id: 'attacks/stopped-starts',
    name: 'a guest that stops every other process of its cell costs a run no more than its time, and the sandbox lives',
    needs: ['engine', 'isolates'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const attacker = await sandbox.start(python(stopOthers))
        await attacker.output[Symbol.asyncIterator]().next()
        const startedAt = performance.now()
        const outcomes = []
        for (let turn = 0; turn < 3; turn += 1) outcomes.push((await sandbox.run(['sleep', '30'], { timeout: '1s' })).outcome)
        const tookMs = performance.now() - startedAt
        ensureSame(new Set(outcomes.map((outcome) => JSON.stringify(outcome))).size, 1, 'the number of different outcomes')
        ensureSame(outcomes[0], { kind: 'timed-out', by: 'wall', limitMs: 1000 }, 'the outcome')
        ensure(tookMs < 12_000, 'three runs of a second each must end in time', `${Math.round(tookMs)} ms`)
        await attacker.kill()
        ensureExited(await sandbox.run(['true']))
        return `timed out, three times in ${Math.round(tookMs)} ms`
      }),
  },
]
