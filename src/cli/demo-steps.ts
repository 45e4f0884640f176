import type { Outcome } from '../contract/run.js'
import type { DemoStage } from './demo-stage.js'
import type { PlainResult } from './plain-spawn.js'
import { durationInWords } from './words.js'

/** What a sandboxed run of a step came to. */
export interface Observed {
  readonly outcome: Outcome
  readonly stdout: string
  readonly stderr: string
}

export interface Verdict {
  readonly ok: boolean
  /** What was seen, for a person. */
  readonly seen: string
}

/** One thing a program tries. The same argv is run plainly beside it: the proof that it would have worked. */
export interface DemoStep {
  readonly name: string
  readonly title: string
  argv(stage: DemoStage): readonly string[]
  /** Where a plain spawn is to do less than the sandboxed program tries. */
  plainArgv?(stage: DemoStage): readonly string[]
  readonly rounds: number
  readonly timeMs: number
  judge(observed: Observed, stage: DemoStage): Promise<Verdict> | Verdict
  judgePlain(plain: PlainResult, stage: DemoStage): Promise<string> | string
}

const connectScript = `
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2)
except OSError as error:
    sys.exit(error.strerror or str(error))
print("connected")`

/** As large as a disk, and empty: what it costs comes later, when somebody copies it. */
const growScript = `
import os, sys
try:
    with open(sys.argv[1], "wb") as file: os.truncate(file.fileno(), 1 << 40)
except OSError as error:
    sys.exit(error.strerror)
print(os.stat(sys.argv[1]).st_size)`

const loopMs = 500

function computes(expected: string): Pick<DemoStep, 'rounds' | 'timeMs' | 'judge' | 'judgePlain'> {
  return {
    rounds: 3,
    timeMs: 20_000,
    judge: ({ outcome, stdout, stderr }) => ({
      ok: outcome.kind === 'exited' && outcome.code === 0 && stdout.trim() === expected,
      seen: stdout.trim() || lastReason(stderr) || describe(outcome),
    }),
    judgePlain: (plain) => (plain.stdout.trim() === expected ? 'the same' : 'something else'),
  }
}

export const demoSteps: readonly DemoStep[] = [
  {
    name: 'python',
    title: 'Python computes 20!',
    argv: () => ['python3', '-c', 'import math; print(math.factorial(20))'],
    ...computes('2432902008176640000'),
  },
  {
    name: 'node',
    title: 'Node computes 2^64',
    argv: () => ['node', '-e', 'console.log(String(2n ** 64n))'],
    ...computes('18446744073709551616'),
  },
  {
    name: 'read',
    title: 'Reading a file of the host',
    argv: (stage) => ['cat', stage.secretPath],
    rounds: 3,
    timeMs: 20_000,
    judge: ({ outcome, stdout, stderr }, stage) => {
      const leaked = stdout.includes(stage.secret)
      return { ok: !leaked && isRefusal(outcome), seen: leaked ? 'it was read' : refusalOf(outcome, stderr) }
    },
    judgePlain: (plain, stage) => (plain.stdout.includes(stage.secret) ? 'reads it' : 'could not read it'),
  },
  {
    name: 'write',
    title: 'Writing outside the sandbox',
    argv: (stage) => writeTo(stage.writePaths),
    plainArgv: (stage) => writeTo(stage.writePaths.slice(0, 1)),
    rounds: 3,
    timeMs: 20_000,
    judge: async ({ outcome, stderr }, stage) => {
      const written = await stage.takeWritten()
      return { ok: !written && isRefusal(outcome), seen: written ? 'it was written' : refusalOf(outcome, stderr) }
    },
    judgePlain: async (_, stage) => ((await stage.takeWritten()) ? 'writes it' : 'could not write it'),
  },
  {
    name: 'connect',
    title: 'Connecting to a listener of the host',
    argv: (stage) => ['python3', '-c', connectScript, String(stage.port)],
    rounds: 1,
    timeMs: 20_000,
    judge: async ({ outcome, stderr }, stage) => {
      const connections = await stage.takeConnections()
      const seen = connections === 0 ? `${refusalOf(outcome, stderr)}; nothing was seen` : 'the listener was reached'
      return { ok: connections === 0 && isRefusal(outcome), seen }
    },
    judgePlain: async (_, stage) => ((await stage.takeConnections()) > 0 ? 'connects' : 'could not connect'),
  },
  {
    name: 'grow',
    title: 'Making a file of a terabyte',
    argv: () => ['python3', '-c', growScript, 'huge'],
    plainArgv: (stage) => ['python3', '-c', growScript, stage.hugePath],
    rounds: 1,
    timeMs: 20_000,
    judge: ({ outcome, stderr }) => ({ ok: isRefusal(outcome), seen: refusalOf(outcome, stderr) }),
    judgePlain: (plain) => (plain.stdout.trim() === String(2 ** 40) ? 'makes it' : 'could not make it'),
  },
  {
    name: 'loop',
    title: 'Looping for ever',
    argv: () => ['sh', '-c', 'while :; do :; done'],
    rounds: 1,
    timeMs: loopMs,
    judge: ({ outcome }) => ({ ok: outcome.kind === 'timed-out', seen: describe(outcome) }),
    judgePlain: (plain) => (plain.stopped ? 'runs on; we stopped it' : 'ended'),
  },
]

function writeTo(paths: readonly string[]): readonly string[] {
  return ['sh', '-c', 'for path; do echo owned > "$path"; done', 'sh', ...paths]
}

function isRefusal(outcome: Outcome): boolean {
  return outcome.kind === 'exited' && outcome.code !== 0
}

/** 'refused: ' and the program's own words for it, or how else it ended. */
function refusalOf(outcome: Outcome, stderr: string): string {
  const reason = lastReason(stderr)
  return isRefusal(outcome) && reason !== '' ? `refused: ${reason}` : describe(outcome)
}

/** 'cat: /tmp/x: No such file or directory' → 'No such file or directory'. */
function lastReason(stderr: string): string {
  const line = stderr.trimEnd().split('\n').at(-1) ?? ''
  return (line.split(': ').at(-1) ?? '').slice(0, 36)
}

function describe(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'exited':
      return `exited with ${outcome.code}`
    case 'signaled':
      return `ended by ${outcome.signal}`
    case 'timed-out':
      return `stopped at its limit of ${durationInWords(outcome.limitMs)}`
    case 'out-of-memory':
      return 'out of memory'
    case 'output-limit':
      return 'stopped at its output limit'
    case 'killed':
      return `killed: ${outcome.reason}`
    case 'not-started':
      return `not started: ${outcome.reason}`
  }
}
