import { ensure, ensureExited, ensureSame, show, text } from '../check.js'
import { askPython, markedSleep, python, until, withSandbox } from '../guest.js'
import { ensureNoProcess } from '../leftovers.js'
import type { Case } from '../subject.js'

/** Signals whose default is to end a program, by the names they are reported under. */
const deadlySignals: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGSEGV: 11,
  SIGUSR2: 12,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
  SIGXCPU: 24,
  SIGXFSZ: 25,
  SIGVTALRM: 26,
  SIGPROF: 27,
  SIGIO: 29,
  SIGPWR: 30,
  SIGSYS: 31,
}

async function inBatches<T>(items: readonly T[], size: number, each: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += size) await Promise.all(items.slice(at, at + size).map(each))
}

export const endingCases: readonly Case[] = [
  {
    id: 'endings/exit-codes',
    name: 'every exit code from 0 to 255 is told as it is',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const codes = Array.from({ length: 256 }, (_, code) => code)
        await inBatches(codes, 16, async (code) => {
          const { outcome } = await sandbox.run(['sh', '-c', `exit ${code}`])
          ensureSame(outcome, { kind: 'exited', code }, 'the outcome')
        })
        return '256 codes'
      }),
  },
  {
    id: 'endings/signals',
    name: 'every deadly signal is told by its name',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        await inBatches(Object.entries(deadlySignals), 8, async ([signal, number]) => {
          const { outcome } = await sandbox.run(['sh', '-c', `kill -${number} $$; sleep 5`])
          const named = outcome.kind === 'signaled' && signal === 'SIGIO' && outcome.signal === 'SIGPOLL' ? { kind: 'signaled', signal } : outcome
          ensureSame(named, { kind: 'signaled', signal }, `the outcome of signal ${number}`)
        })
        return `${Object.keys(deadlySignals).length} signals`
      }),
  },
  {
    id: 'endings/real-time-signal',
    name: 'a real-time signal ends a program as signaled, never as an exit code',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const seen = []
        for (const number of [34, 40, 64]) {
          const { outcome } = await sandbox.run(python(`import os; os.kill(os.getpid(), ${number})`))
          ensure(outcome.kind === 'signaled' && outcome.signal.length > 0, 'must be signaled', outcome)
          seen.push(outcome.signal)
        }
        ensureSame(new Set(seen).size, 3, 'the number of different names')
        return seen.join(' ')
      }),
  },
  {
    id: 'endings/signal-delivery',
    name: 'a signal reaches the program, which may handle it',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const process = await sandbox.start(['sh', '-c', 'exec 2>/dev/null; trap "echo caught; exit 6" TERM; echo ready; while :; do sleep 0.05; done'])
        let seen = ''
        for await (const event of process.output) {
          if (event.type === 'stdout') seen += text(event.bytes)
          if (seen === 'ready\n') await process.signal('SIGTERM')
        }
        ensureSame([seen, (await process.ended).outcome], ['ready\ncaught\n', { kind: 'exited', code: 6 }], 'what it said and its end')
        return 'caught SIGTERM and exited with 6'
      }),
  },
  {
    id: 'endings/clean-signals',
    name: 'a program starts with every signal at its default and none blocked',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        // Three of them Python sets itself, of which a shell tells by dying.
        const script = `import json, signal as s
ignored = [n for n in range(1, 65) if n not in (2, 9, 13, 19, 25, 32, 33) and s.getsignal(n) == s.SIG_IGN]
print(json.dumps([[int(n) for n in s.pthread_sigmask(s.SIG_BLOCK, [])], ignored]))`
        ensureSame(await askPython(sandbox, script), [[], []], 'the blocked signals and the ignored ones')
        for (const [name, number] of [
          ['PIPE', 13],
          ['XFSZ', 25],
          ['INT', 2],
        ] as const)
          ensureSame((await sandbox.run(['sh', '-c', `kill -${number} $$`])).outcome, { kind: 'signaled', signal: `SIG${name}` }, `the end by ${name}`)
        return 'none blocked, none ignored'
      }),
  },
  {
    id: 'endings/closed-stdout',
    name: 'a program that closes its stdout and goes on is waited for',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const result = await sandbox.run(['sh', '-c', 'printf early; exec 1>&- 2>&-; sleep 0.4; exit 8'])
        ensureSame(ensureExited(result, 8), 'early', 'stdout')
        ensure(result.usage.wallMs >= 390, 'the wall time must cover what it did afterwards', result.usage)
        return `exited with 8 after ${Math.round(result.usage.wallMs)} ms`
      }),
  },
  {
    id: 'endings/background-child',
    name: 'a background child that holds the pipe does not hold the run',
    run: async (subject) => {
      const { marker, argv } = markedSleep()
      const { usage } = await withSandbox(subject, async (sandbox) => {
        const result = await sandbox.run(['sh', '-c', `${argv.join(' ')} & echo started; exit 2`])
        ensureSame(ensureExited(result, 2), 'started\n', 'stdout')
        ensure(result.usage.wallMs < 30_000, 'the run must end with its program', result.usage)
        return result
      })
      await ensureNoProcess(subject, marker)
      return `ended after ${Math.round(usage.wallMs)} ms, the child with the sandbox`
    },
  },
  {
    id: 'endings/orphans-reaped',
    name: 'orphans are reaped: twenty of them leave no zombie',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const process = await sandbox.start(['sh', '-c', 'for i in $(seq 20); do (sh -c "sleep 0.05 &" &); done; sleep 0.2; echo done; read -r x'], {
          stdin: true,
        })
        const iterator = process.output[Symbol.asyncIterator]()
        await iterator.next()
        const zombies = async () =>
          askPython<string[]>(
            sandbox,
            `import os, json
def stat(p):
    try: return open('/proc/' + p + '/stat').read().rsplit(')', 1)
    except OSError: return ('', ' X')
print(json.dumps([s[0] for s in map(stat, filter(str.isdigit, os.listdir('/proc'))) if s[1].split()[0] == 'Z' and '(sleep' in s[0]]))`,
          )
        const isClean = subject.probe.isolates ? await until(async () => (await zombies()).length === 0) : true
        ensure(isClean, 'no zombie may stay', await zombies())
        await process.endInput()
        await iterator.return?.()
        await process.kill()
        return 'no zombie left'
      }),
  },
  {
    id: 'endings/self-stopped',
    name: 'a program that stops itself can be continued, and killed',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const continued = await sandbox.start(['sh', '-c', 'kill -STOP $$; exit 4'])
        // Told again and again: it may not have stopped yet, or have ended meanwhile.
        const timer = setInterval(() => void continued.signal('SIGCONT').catch(() => undefined), 50)
        for await (const _ of continued.output) continue
        const first = (await continued.ended).outcome
        clearInterval(timer)
        ensureSame(first, { kind: 'exited', code: 4 }, 'the outcome of the continued one')
        const killed = await sandbox.start(['sh', '-c', 'kill -STOP $$; exit 4'])
        await killed.kill()
        for await (const _ of killed.output) continue
        const second = (await killed.ended).outcome
        ensure(second.kind === 'killed' || second.kind === 'signaled', 'the killed one must end as killed', second)
        return `${first.kind}, then ${second.kind}`
      }),
  },
  {
    id: 'endings/watcher-killed',
    name: 'a program that kills whoever watches it is never told as a success',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const { outcome } = await sandbox.run(['sh', '-c', 'kill -9 $PPID 2>/dev/null; sleep 0.3; exit 5'])
        ensure(outcome.kind === 'killed' || (outcome.kind === 'exited' && outcome.code === 5), 'must be told as killed, or as the 5 it exited with', outcome)
        ensureExited(await sandbox.run(['true']))
        return show(outcome)
      }),
  },
  {
    id: 'endings/usage',
    name: 'the usage of a run is what it used',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const script = `import time
block = bytearray(48 << 20)
until = time.process_time() + 0.3
while time.process_time() < until: pass
print('x' * 100, end='')`
        const { usage } = await sandbox.run(python(script))
        const cpuMs = usage.cpuUserMs + usage.cpuSystemMs
        // The clock of a kernel of its own goes on while the host lets that wait.
        const leastMs = subject.probe.ownKernel ? 20 : 290
        ensure(cpuMs >= leastMs && cpuMs < 5000, 'the processor time must be about 300 ms', usage)
        ensure(usage.wallMs >= cpuMs * 0.9, 'the wall time must cover the processor time', usage)
        ensure(usage.memoryPeakBytes > 48 << 20 && usage.memoryPeakBytes < 256 << 20, 'the peak must hold the 48 MiB', usage)
        ensureSame(usage.outputBytes, 100, 'usage.outputBytes')
        return `${Math.round(cpuMs)} ms of processor time, ${Math.round(usage.memoryPeakBytes / 2 ** 20)} MiB`
      }),
  },
]
