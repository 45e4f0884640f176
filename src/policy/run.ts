import type * as z from 'zod'
import { SandboxError } from '../contract/errors.js'
import type { LimitName, runLimitsSchema } from '../contract/limits.js'
import { type onOutputLimit, runRequestSchema, type TerminalSize } from '../contract/run.js'
import type { Spec, UserName } from '../contract/spec.js'
import { checkCommand, checkEnv } from './bounds.js'
import { plainRequest } from './plain-request.js'
import { valueInWords } from './policy-words.js'
import { parseObject } from './refusal.js'

/** One run, checked and completed from its sandbox's spec. */
export interface RunPlan {
  readonly command: string | readonly string[]
  /** Undefined: where the cell's runs start. */
  readonly cwd: string | undefined
  /** The spec's variables and the run's own. */
  readonly env: Readonly<Record<string, string>>
  readonly user: UserName
  readonly stdin: boolean
  /** Undefined: nobody keeps it. */
  readonly kept: { readonly tag: string | undefined; readonly ringBytes: number } | undefined
  readonly terminal: TerminalSize | undefined
  /** What it is fed is its descriptor 3 instead of its stdin, and its descriptor 4 is a third stream. Nobody can ask for that but the engine itself. */
  readonly aside: boolean
  /** In a liner of its own. Nobody can ask for that but the engine itself. */
  readonly liner?: true
  /** Wall time; undefined for a background process or a terminal, which ends with its sandbox. */
  readonly timeMs: number | undefined
  readonly limits: PlannedLimits
  /** Set for a captured run, and for a streamed one whose sandbox states a limit. */
  readonly output: { readonly limitBytes: number; readonly onLimit: (typeof onOutputLimit)[number] } | undefined
}

/** Programs that use select() break when they are given more without having asked. */
const unaskedOpenFiles = 1024

type StatedLimits = z.output<typeof runLimitsSchema>

/** What holds a run: its own limits where it has any, its sandbox's otherwise. */
export interface PlannedLimits {
  readonly memoryBytes: number
  readonly processes: number
  readonly cpuTimeMs: number | undefined
  readonly fileSizeBytes: number
  readonly openFiles: number
  /** What it starts with, and may raise to `openFiles`. */
  readonly openFilesAtFirst: number
  /** Those that the run has of its own. */
  readonly stated: readonly (keyof StatedLimits)[]
}

/** Throws SandboxError('invalid') naming the field: before anything starts. `asked`: the limits that were asked for, rather than capped or our own. */
export function planRun(request: unknown, spec: Spec, asked: readonly LimitName[] = spec.limits.stated): RunPlan {
  const parsed = plainRequest(request) ?? parseObject(runRequestSchema, request, { what: 'run', objects: ['env', 'output', 'limits', 'terminal'] })
  const { limits } = spec
  const env = { ...spec.env, ...parsed.env }
  checkCommand(parsed.command)
  checkEnv(env)
  const { background, terminal, tag } = parsed
  if (tag !== undefined && !background) throw new SandboxError('invalid', 'tag: only a process that is kept can have one')
  const isLasting = background || terminal !== undefined
  if (!isLasting) checkNotRaised('timeout', parsed.timeout, { limit: 'time', most: limits.timeMs })
  checkNotRaised('output.limit', parsed.output?.limit, { limit: 'output', most: limits.outputBytes })
  return {
    command: parsed.command,
    cwd: parsed.cwd ?? spec.cwd,
    env,
    user: parsed.user ?? spec.user,
    stdin: parsed.stdin || terminal !== undefined,
    kept: background ? { tag, ringBytes: spec.ring } : undefined,
    terminal,
    aside: false,
    timeMs: parsed.timeout ?? (isLasting ? undefined : limits.timeMs),
    limits: planLimits(parsed.limits, spec, asked),
    output: planOutput(parsed, spec),
  }
}

/** The same for one that leaves nothing behind for the next: in a liner. Throws SandboxError('unsupported') naming what no liner can have. */
export function planLined(request: unknown, spec: Spec, asked?: readonly LimitName[]): RunPlan {
  const plan = planRun(request, spec, asked)
  const refused = Object.entries({ terminal: plan.terminal, background: plan.kept, user: plan.user === 'root' || undefined }).find(
    ([, value]) => value !== undefined,
  )
  if (refused) throw new SandboxError('unsupported', `${refused[0]}: a run in a liner cannot have it`, { hint: "fresh: 'cell'" })
  return { ...plan, liner: true }
}

/** The same for a program with an aside: it is kept and fed, and none of its output is. */
export function planAside(request: unknown, spec: Spec, asked?: readonly LimitName[]): RunPlan {
  const plan = planRun(typeof request === 'object' ? { ...request, background: true, stdin: true } : request, spec, asked)
  const refused = Object.entries({ terminal: plan.terminal, timeout: plan.timeMs, output: plan.output }).find(([, value]) => value !== undefined)
  if (refused) throw new SandboxError('invalid', `${refused[0]}: a program with an aside has none`)
  return { ...plan, kept: { tag: plan.kept?.tag, ringBytes: 0 }, aside: true }
}

/**
 * What is kept is always bounded. What is handed on as it comes is bounded where somebody asked for that, or a policy caps it; of a background process
 * nothing is kept but the end, and it prints for as long as it lives.
 */
function planOutput({ output, background }: z.output<typeof runRequestSchema>, { limits }: Spec): RunPlan['output'] {
  if (output) return { limitBytes: output.limit ?? limits.outputBytes, onLimit: output.onLimit }
  return !background && limits.stated.includes('output') ? { limitBytes: limits.outputBytes, onLimit: 'kill' } : undefined
}

function planLimits(own: StatedLimits, { limits }: Spec, asked: readonly LimitName[]): PlannedLimits {
  const most = {
    memory: limits.memoryBytes,
    processes: limits.processes,
    cpuTime: limits.cpuTimeMs,
    fileSize: limits.fileSizeBytes,
    openFiles: limits.openFiles,
  } satisfies Record<keyof StatedLimits, number | undefined>
  const stated = (Object.keys(most) as (keyof StatedLimits)[]).filter((name) => own[name] !== undefined)
  const openFiles = own.openFiles ?? most.openFiles
  const isAsked = [...asked, ...stated].includes('openFiles')
  for (const limit of stated) checkNotRaised(`limits.${limit}`, own[limit], { limit, most: most[limit] })
  return {
    memoryBytes: own.memory ?? most.memory,
    processes: own.processes ?? most.processes,
    cpuTimeMs: own.cpuTime ?? most.cpuTime,
    fileSizeBytes: own.fileSize ?? most.fileSize,
    openFiles,
    openFilesAtFirst: isAsked ? openFiles : Math.min(unaskedOpenFiles, openFiles),
    stated,
  }
}

interface Bound {
  readonly limit: LimitName
  /** Undefined: the sandbox has no such limit. */
  readonly most: number | undefined
}

/** A run may lower what its sandbox allows. Asking for more is refused, not quietly lowered: the run would end sooner than its owner expects. */
function checkNotRaised(field: string, value: number | undefined, { limit, most }: Bound): void {
  if (value === undefined || most === undefined || value <= most) return
  const name = `limits.${limit}`
  throw new SandboxError('invalid', `${field}: ${valueInWords(name, value)} is above the sandbox's ${name} of ${valueInWords(name, most, Math.floor)}`)
}
