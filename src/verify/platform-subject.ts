import type { HostView, Subject, SubjectProcess, SubjectResult, SubjectRunOptions, SubjectSandbox } from '../conformance/index.js'
import type { Probe } from '../contract/driver.js'
import type { Platform } from '../contract/platform.js'
import { exchange } from './exchange.js'
import { type RunOptions, type RunResult, Sandbox, SandboxPool } from '../sandbox/index.js'

export interface PlatformSubjectOptions {
  readonly platform: Platform
  /** Of the driver that is meant. */
  readonly probe: Probe
  readonly host: HostView
  /** Over HTTP, or in this process; that when not given. */
  readonly depth?: 'engine' | 'client'
}

/** The library as its users hold it: `Sandbox` over a platform. */
export function createPlatformSubject({ platform, probe, host, depth = 'engine' }: PlatformSubjectOptions): Subject {
  const { driver } = probe
  return {
    name: `${driver} ${depth}`,
    depth,
    probe,
    host,
    open: async (spec = {}, options = {}) => {
      const { signal } = options
      const sandbox = await Sandbox.create({ driver, ...leastTier(probe), ...spec, platform, ...(signal && { signal }) })
      return wrapSandbox(platform, sandbox)
    },
    pool: async ({ size }) => {
      const pool = await SandboxPool.create({ driver, ...leastTier(probe), platform, size })
      return {
        acquire: async () => {
          const sandbox = await pool.acquire()
          return { id: sandbox.id, sandbox: wrapSandbox(platform, sandbox) }
        },
        run: async (command) => resultOf(await pool.run(command)),
        close: () => pool.close(),
      }
    },
    lined: async (spec) => {
      const pool = await SandboxPool.create({ ...(spec as object), driver, platform, fresh: 'liner', size: 1 })
      return { run: async (command, options = {}) => resultOf(await pool.run(command, runOptions(options))), close: () => pool.close() }
    },
  }
}

function runOptions({ output, ...rest }: SubjectRunOptions): RunOptions {
  return { ...rest, ...(output && { output: output.limit, onOutputLimit: output.onLimit }) }
}

function resultOf({ outcome, stdoutBytes, stderrBytes, usage, truncated }: RunResult): SubjectResult {
  return { outcome, stdout: stdoutBytes, stderr: stderrBytes, usage, truncated }
}

/** A driver without a boundary has to be asked for in so many words. */
function leastTier(probe: Probe): { readonly minTier?: 'none' } {
  return probe.tier === 'none' ? { minTier: 'none' } : {}
}

function wrapSandbox(platform: Platform, sandbox: Sandbox): SubjectSandbox {
  return {
    run: async (command, options = {}) => {
      return resultOf(await sandbox.run(command, runOptions(options)))
    },
    start: async (command, options = {}): Promise<SubjectProcess> => platform.start(sandbox.id, { command, ...options }),
    pause: async (options) => {
      await sandbox.pause(options)
    },
    resume: async () => {
      await sandbox.resume()
    },
    exchange: async (port, bytes) => {
      await using forward = await sandbox.forward(port, { waitFor: '500ms' })
      return await exchange(forward.port, bytes)
    },
    limit: async (limits) => {
      await sandbox.limit(limits)
    },
    usage: () => sandbox.usage(),
    receipt: () => sandbox.receipt(),
    files: platform.files.of(sandbox.id),
    processes: {
      keep: (command, options = {}) => platform.start(sandbox.id, { command, background: true, ...options }),
      attach: (name, options) => platform.processes.attach(sandbox.id, name, options),
      list: () => sandbox.processes(),
    },
    code: {
      languages: () => platform.code.languages(sandbox.id),
      execute: (request, options) => platform.code.execute(sandbox.id, request, options),
      create: (request) => platform.code.createContext(sandbox.id, request),
      list: () => platform.code.listContexts(sandbox.id),
      restart: (context) => platform.code.restartContext(sandbox.id, context),
      remove: (context) => platform.code.removeContext(sandbox.id, context),
    },
    snapshots: {
      take: (options) => sandbox.snapshot(options),
      diff: (options) => sandbox.diff(options),
      fork: async (count) => (await sandbox.fork(count)).map((fork) => wrapSandbox(platform, fork)),
      remove: (snapshot) => platform.snapshots.remove(snapshot),
    },
    close: () => sandbox.close(),
  }
}
