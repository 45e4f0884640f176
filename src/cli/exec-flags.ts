import { SandboxError } from '../contract/errors.js'
import { type RunRequest, runRequestSchema } from '../contract/run.js'
import { pathSchema } from '../contract/spec.js'
import { userNames } from '../contract/spec-words.js'
import { oneOfFlag, parseFlag, refuseFlag } from './flag-values.js'
import { parseEnv } from './run-flags.js'

/** What is said of one program in a sandbox that is there. */
interface ProgramFlags {
  readonly env?: readonly string[]
  readonly workdir?: string
  readonly user?: string
  readonly timeout?: string
}

export interface ExecFlags extends ProgramFlags {
  readonly tty?: true
  readonly detach?: true
  readonly tag?: string
  readonly json?: true
}

export function parseExecFlags(argv: readonly string[], flags: ExecFlags): RunRequest {
  const { tty, detach, tag, json } = flags
  if (tty && detach) throw refuseFlag('--tty', 'what runs in the background is at no terminal of yours')
  if (tty && json) throw refuseFlag('--tty', 'what a terminal shows is no JSON')
  if (tag !== undefined && !detach) throw refuseFlag('--tag', 'is a name for what --detach leaves running')
  return {
    ...programRequest(flags),
    command: commandOf(argv),
    ...(tag !== undefined && { tag: parseFlag('--tag', () => runRequestSchema.shape.tag, tag) ?? tag }),
  }
}

export function programRequest({ env, workdir, user, timeout }: ProgramFlags): Omit<RunRequest, 'command'> {
  const request = {
    env: env && parseEnv(env),
    cwd: parseFlag('--workdir', () => pathSchema, workdir),
    user: oneOfFlag('--user', userNames, user),
    timeout: parseFlag('--timeout', () => runRequestSchema.shape.timeout, timeout),
  }
  return Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined))
}

/** What follows SANDBOX, with or without a `--`. A flag of ours that stands too late would be taken for a program. */
export function commandOf(argv: readonly string[]): string[] {
  const [first = '', ...rest] = argv
  const command = first === '--' ? rest : [first, ...rest]
  if (first !== '--' && first.startsWith('-')) {
    throw new SandboxError('invalid', `COMMAND: '${first.slice(0, 40)}' looks like a flag; flags stand before SANDBOX, and a program of that name behind --`, {
      hint: 'glovebox exec --help',
    })
  }
  parseFlag('COMMAND', () => runRequestSchema.shape.command, command)
  return command
}
