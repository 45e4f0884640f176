import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectWarden } from '../../../src/channel/index.js'
import type { HostView, Subject, SubjectProcess, SubjectSandbox, SubjectStartOptions } from '../../../src/conformance/index.js'
import type { Probe } from '../../../src/contract/driver.js'
import type { FileCalls } from '../../../src/contract/files.js'
import type { Command, Ending, OutputEvent } from '../../../src/contract/run.js'
import { nothingUsed } from '../../../src/engine/usage.js'
import { parseSpec } from '../../../src/policy/spec.js'
import { plainProbe, PlainDriver } from '../../engine/plain-driver.js'
import { filesOfCell } from './cell-files.js'
import { collect } from './collect.js'
import { exchange } from '../../../src/verify/exchange.js'

/** Plain children of this process, with a descriptor that it left open, behind a probe that claims every wall there is. */
export function createUnwalledSubject(host: HostView): Subject {
  return { name: 'no walls', depth: 'driver', probe: boast, host, open: createSandbox }
}

const claimed = { enforced: true, by: 'nothing at all' } as const

const boast: Probe = {
  driver: 'unwalled',
  tier: 'none',
  available: true,
  obstacles: [],
  limits: {
    memory: claimed,
    cpus: claimed,
    cpuTime: claimed,
    disk: claimed,
    inodes: claimed,
    fileSize: claimed,
    openFiles: claimed,
    processes: claimed,
    readRate: claimed,
    writeRate: claimed,
  },
  features: {
    commands: { available: true },
    'mounts-ro': { available: true },
    'mounts-overlay': { available: true },
    'mounts-rw': { available: true },
    'root-overlay': { available: true },
    liners: { available: true },
    pause: { available: true },
    network: { available: true },
    'direct-network': { available: true },
  },
  users: { user: { available: true }, root: { available: true } },
  filtersSyscalls: true,
  isolates: true,
  facts: {},
}

async function createSandbox(): Promise<SubjectSandbox> {
  const folder = mkdtempSync(join(tmpdir(), 'gbx-unwalled-'))
  const { files, closeFiles } = await openFiles(folder)
  const children = new Set<ChildProcess>()
  const left = openSync('/', 'r')
  const begin = (command: Command, options: SubjectStartOptions): SubjectProcess => {
    const argv = typeof command === 'string' ? ['/bin/sh', '-c', command] : command
    const env = { ...process.env, ...options.env }
    const child = spawn(argv[0] ?? '', argv.slice(1), { cwd: options.cwd ?? folder, env, stdio: ['pipe', 'pipe', 'pipe', left], detached: true })
    children.add(child)
    return wrap(child)
  }
  return {
    run: (command, { stdin, signal, ...options } = {}) => {
      const program = begin(command, { ...options, stdin: stdin !== undefined })
      signal?.addEventListener('abort', () => killGroup(program.pid))
      return collect(program, stdin ?? new Uint8Array())
    },
    start: (command, options = {}) => Promise.resolve(begin(command, options)),
    pause: () => Promise.resolve(),
    resume: () => Promise.resolve(),
    exchange,
    files,
    close: async () => {
      await closeFiles()
      closeSync(left)
      for (const { pid } of children) if (pid !== undefined) killGroup(pid)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** With all that it started and that did not leave its group. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It is gone.
  }
}

/** Real workers of a real warden, which stand in the open. */
async function openFiles(workdir: string): Promise<{ readonly files: FileCalls; closeFiles(): Promise<void> }> {
  const spec = parseSpec({})
  const root = { name: 'host', binds: [], symlinks: [], shell: '/bin/sh', env: {} }
  const order = { id: 'unwalled', root, limits: spec.limits, rootMode: spec.root, mounts: [], commands: undefined }
  const cell = await new PlainDriver().open(order, new AbortController().signal)
  const warden = await connectWarden(cell.channel)
  return {
    files: filesOfCell({ cell, warden, spec, root, probe: plainProbe, workdir }),
    closeFiles: async () => {
      warden.close()
      await cell.close()
    },
  }
}

function wrap(child: ChildProcess): SubjectProcess {
  const ended = new Promise<Ending>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      const outcome = signal === null ? ({ kind: 'exited', code: code ?? 1 } as const) : ({ kind: 'signaled', signal } as const)
      resolve({ outcome, usage: nothingUsed, truncated: false })
    })
  })
  ended.catch(() => undefined)
  child.stdin?.on('error', () => undefined)
  return {
    pid: child.pid ?? 0,
    output: outputOf(child),
    write: async (bytes) => void child.stdin?.write(bytes),
    endInput: async () => void child.stdin?.end(),
    signal: async (name) => void child.kill(constants.signals[name as NodeJS.Signals]),
    kill: async () => void child.kill('SIGKILL'),
    ended,
  }
}

async function* outputOf(child: ChildProcess): AsyncGenerator<OutputEvent, void, undefined> {
  const errors: Uint8Array[] = []
  child.stderr?.on('data', (bytes: Uint8Array) => errors.push(bytes))
  for await (const bytes of child.stdout ?? []) yield { type: 'stdout', bytes: bytes as Uint8Array }
  for (const bytes of errors) yield { type: 'stderr', bytes }
}
