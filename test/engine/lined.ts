import { randomBytes } from 'node:crypto'
import { engineOptions } from '../../src/compose.js'
import type { SpecInput } from '../../src/contract/spec.js'
import { Filters } from '../../src/engine/filters.js'
import { LiveSandbox } from '../../src/engine/live-sandbox.js'
import { prepareCell } from '../../src/engine/making.js'
import { makeHome } from '../../src/engine/making-home.js'
import { Probes } from '../../src/engine/probes.js'
import { infoAtBirth } from '../../src/engine/sandbox-birth.js'
import { planSandbox } from '../../src/policy/apply.js'
import { collect } from './collect.js'

export interface LinedSandbox extends AsyncDisposable {
  readonly sandbox: LiveSandbox
  /** One run in a liner, to its end. */
  run(command: string | string[], more?: object): Promise<{ readonly out: string; readonly err: string; readonly code: unknown; readonly outcome: unknown }>
}

/** A sandbox whose runs can have liners, made as a pool makes it. */
export async function openLined(spec: SpecInput = {}): Promise<LinedSandbox> {
  const options = engineOptions({})
  const planned = planSandbox(spec, undefined)
  const id = randomBytes(10).toString('hex')
  const { signal } = new AbortController()
  const tools = { makers: options, filters: new Filters(options.filter), probes: new Probes() }
  const preparation = await prepareCell({ id, planned, signal, liners: true }, tools)
  const home = await makeHome(preparation, tools, { signal, answerMs: 20_000 })
  const sandbox = new LiveSandbox({
    info: infoAtBirth({ id, planned, preparation, home, pooled: false }),
    home,
    made: { fresh: 'liner', pooled: false },
    policy: planned.policy,
    origins: planned.origins,
    bounds: { maxRuns: 256, answerMs: 20_000, maxRingBytes: 2 ** 20, maxPausedMs: 1000 },
    machine: options.machine,
    listen: options.listen,
    remake: () => Promise.reject(new Error('not made again')),
    keepAside: () => Promise.reject(new Error('nothing is kept')),
    zygotes: () => options.runtimes().zygote?.(),
    onGone: () => undefined,
  })
  const run: LinedSandbox['run'] = async (command, more = {}) => {
    const program = await sandbox.startLined({ command, ...more }, undefined)
    const { stdout, stderr } = await collect(program)
    const { outcome } = await program.ended
    return { out: stdout, err: stderr, code: 'code' in outcome ? outcome.code : undefined, outcome }
  }
  return { sandbox, run, [Symbol.asyncDispose]: () => sandbox.close() }
}
