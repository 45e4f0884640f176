import { ensure, ensureBytes, ensureExited, ensureSame, text } from '../check.js'
import { markedSleep, python, withSandbox } from '../guest.js'
import { ensureNoProcess } from '../leftovers.js'
import type { Case, Subject, SubjectResult } from '../subject.js'

/** From the limit to the answer: half a second, and the time an engine may give a program to end by itself. */
const toleranceMs = 2000

interface Endless {
  readonly id: string
  readonly what: string
  readonly command: (marker: string) => string[]
}

/** Two chains in sessions of their own, each process of which forks the next and dies, so that whoever kills one is always too late. */
const respawning = `import os, sys, time
end = time.monotonic() + 30
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        while time.monotonic() < end:
            if os.fork(): os._exit(0)
        os._exit(0)
time.sleep(30)`

const endless: readonly Endless[] = [
  { id: 'sleeping', what: 'a program that sleeps', command: (marker) => ['sleep', marker] },
  { id: 'busy', what: 'a busy loop', command: (marker) => python('import time\nend = time.monotonic() + 30\nwhile time.monotonic() < end: pass', marker) },
  {
    id: 'deaf',
    what: 'a program that ignores every signal it can',
    command: (marker) => ['sh', '-c', `trap "" HUP INT TERM QUIT USR1 USR2; sleep ${marker}; sleep ${marker}`],
  },
  { id: 'stopped', what: 'a program that stopped itself', command: (marker) => ['sh', '-c', `sleep ${marker} & kill -STOP $$`] },
  {
    id: 'hiding',
    what: 'a tree that made a new session and forked twice',
    command: (marker) => ['sh', '-c', `(setsid sh -c 'trap "" HUP TERM; exec </dev/null >/dev/null 2>&1; sleep ${marker}' &); sleep ${marker}`],
  },
  { id: 'respawning', what: 'a tree that respawns faster than it is killed', command: (marker) => python(respawning, marker) },
  { id: 'silent', what: 'a program that closed all its descriptors', command: (marker) => ['sh', '-c', `exec 0<&- 1>&- 2>&-; sleep ${marker}`] },
]

function timeCase({ id, what, command }: Endless): Case {
  return {
    id: `limits/time-${id}`,
    name: `${what} is stopped at its time, with all its processes`,
    needs: ['engine'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const { marker } = markedSleep()
        const startedAt = performance.now()
        const { outcome } = await sandbox.run(command(marker), { timeout: '400ms' })
        const tookMs = performance.now() - startedAt
        ensureSame(outcome, { kind: 'timed-out', by: 'wall', limitMs: 400 }, 'the outcome')
        ensure(tookMs >= 390 && tookMs < 400 + toleranceMs, `must be stopped within ${toleranceMs} ms of its limit`, `${Math.round(tookMs)} ms`)
        await ensureNoProcess(subject, marker, sandbox)
        ensureExited(await sandbox.run(['true']))
        return `timed out after ${Math.round(tookMs)} ms, nothing survived`
      }),
  }
}

/** What one flood of `length` bytes on stdout ends in, under a limit. */
function flood(subject: Subject, length: number, output: { readonly limit: number; readonly onLimit: 'kill' | 'truncate' }): Promise<SubjectResult> {
  const script = `import os
left = ${length}
while left: left -= os.write(1, b'x' * min(left, 50000))
`
  return withSandbox(subject, (sandbox) => sandbox.run(python(script), { output }))
}

const bothStreams = `import os, threading
def flood(fd, byte):
    for _ in range(400): os.write(fd, byte * 1000)
threads = [threading.Thread(target=flood, args=a) for a in ((1, b'o'), (2, b'e'))]
[t.start() for t in threads]; [t.join() for t in threads]`

function ensureFlood(result: SubjectResult, kept: number, printed: number): void {
  ensureBytes(result.stdout, new Uint8Array(kept).fill(0x78), 'what was kept')
  ensureSame(result.stderr.length, 0, 'the length of stderr')
  ensureSame(result.usage.outputBytes, printed, 'usage.outputBytes')
}

export const runLimitCases: readonly Case[] = [
  ...endless.map(timeCase),
  {
    id: 'limits/time-of-spec',
    name: "the sandbox's time limit holds for every run, and a run cannot raise it",
    needs: ['engine'],
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          const own = await sandbox.run(['sleep', '30'])
          ensureSame(own.outcome, { kind: 'timed-out', by: 'wall', limitMs: 2000 }, 'the outcome without a timeout')
          const raised = await sandbox.run(['sleep', '30'], { timeout: '20s' }).then(
            ({ outcome }) => outcome,
            (error: unknown) => error,
          )
          const isHeld = raised instanceof Error ? 'code' in raised && raised.code === 'invalid' : (raised as { kind: string }).kind === 'timed-out'
          ensure(isHeld, 'a longer timeout must be refused or cut', raised)
          ensureExited(await sandbox.run(['true']))
          return 'held at 2 s'
        },
        { limits: { time: '2s' } },
      ),
  },
  {
    id: 'limits/time-keeps-output',
    name: 'what a program printed before its time was up is kept',
    needs: ['engine'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const result = await sandbox.run(['sh', '-c', 'printf kept; printf also >&2; sleep 30'], { timeout: '2s' })
        ensureSame([result.outcome.kind, text(result.stdout), text(result.stderr)], ['timed-out', 'kept', 'also'], 'the outcome and its output')
        return 'kept, also'
      }),
  },
  {
    id: 'limits/output-kill',
    name: 'a captured run is killed at its output limit, with exactly that many bytes kept',
    needs: ['engine'],
    run: async (subject) => {
      const result = await flood(subject, 5_000_000, { limit: 100_001, onLimit: 'kill' })
      ensureSame([result.outcome, result.truncated], [{ kind: 'output-limit', limitBytes: 100_001 }, true], 'the outcome')
      ensureBytes(result.stdout, new Uint8Array(100_001).fill(0x78), 'what was kept')
      return 'killed, 100,001 bytes kept'
    },
  },
  {
    id: 'limits/output-truncate',
    name: 'a truncated run goes on to its end, with exactly the limit kept and the rest counted',
    needs: ['engine'],
    run: async (subject) => {
      const result = await flood(subject, 5_000_000, { limit: 100_001, onLimit: 'truncate' })
      ensureSame([result.outcome, result.truncated], [{ kind: 'exited', code: 0 }, true], 'the outcome')
      ensureFlood(result, 100_001, 5_000_000)
      return 'exited with 0, 100,001 of 5,000,000 bytes kept'
    },
  },
  {
    id: 'limits/output-border',
    name: 'exactly the limit is allowed, one byte more is not, and a limit of nothing allows silence',
    needs: ['engine'],
    run: async (subject) => {
      for (const onLimit of ['kill', 'truncate'] as const) {
        const exact = await flood(subject, 70_000, { limit: 70_000, onLimit })
        ensureSame([exact.outcome, exact.truncated], [{ kind: 'exited', code: 0 }, false], `exactly the limit with ${onLimit}`)
        ensureFlood(exact, 70_000, 70_000)
        const silent = await flood(subject, 0, { limit: 0, onLimit })
        ensureSame([silent.outcome, silent.truncated], [{ kind: 'exited', code: 0 }, false], `silence under a limit of 0 with ${onLimit}`)
      }
      const over = await flood(subject, 70_001, { limit: 70_000, onLimit: 'truncate' })
      ensureSame([over.truncated, over.stdout.length], [true, 70_000], 'one byte more')
      const killed = await flood(subject, 70_001, { limit: 70_000, onLimit: 'kill' })
      ensureSame([killed.outcome.kind, killed.stdout.length], ['output-limit', 70_000], 'one byte more with kill')
      return 'exact to the byte'
    },
  },
  {
    id: 'limits/output-both-streams',
    name: 'stdout and stderr share one output limit, and each keeps its beginning',
    needs: ['engine'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const result = await sandbox.run(python(bothStreams), { output: { limit: 90_000, onLimit: 'truncate' } })
        ensureSame([result.outcome, result.truncated], [{ kind: 'exited', code: 0 }, true], 'the outcome')
        ensureSame(result.stdout.length + result.stderr.length, 90_000, 'the bytes kept of both')
        ensureBytes(result.stdout, new Uint8Array(result.stdout.length).fill(0x6f), 'stdout')
        ensureBytes(result.stderr, new Uint8Array(result.stderr.length).fill(0x65), 'stderr')
        ensureSame(result.usage.outputBytes, 800_000, 'usage.outputBytes')
        return `${result.stdout.length} + ${result.stderr.length} of 800,000 bytes`
      }),
  },
  {
    id: 'limits/output-of-spec',
    name: "the sandbox's output limit holds for every run, captured or streamed, and a flood without end is stopped",
    needs: ['engine'],
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          const result = await sandbox.run(['timeout', '20', 'yes'])
          ensureSame([result.outcome, result.stdout.length], [{ kind: 'output-limit', limitBytes: 65_536 }, 65_536], 'the outcome of yes')
          const streamed = await sandbox.start(['timeout', '20', 'yes'])
          let handedOn = 0
          for await (const { bytes } of streamed.output) handedOn += bytes.length
          ensureSame([(await streamed.ended).outcome, handedOn], [{ kind: 'output-limit', limitBytes: 65_536 }, 65_536], 'the outcome of yes, streamed')
          ensureExited(await sandbox.run(['true']))
          return 'stopped at 65,536 bytes, captured and streamed'
        },
        { limits: { output: '64k' } },
      ),
  },
]
