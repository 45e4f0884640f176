/** Which runs of Python an interpreter that is there already can go on as, so that nobody can tell it from one that was started for them. */
import type { StartRequest } from '../channel/index.js'
import type { RunRequest } from '../contract/run.js'
import type { Spec } from '../contract/spec.js'

/** An interpreter that waits. */
export interface WaitingPython {
  /** What it was started as; not given: `python3`. */
  readonly startedAs?: string
  /** Its own path. */
  readonly executable: string
  readonly env: Readonly<Record<string, string>>
}

/** What an interpreter reads of its environment before anything else, and so cannot be told later. */
const readAtStart = /^(PYTHON|LANG$|LANGUAGE$|LC_|HOME$)/
/** What the loader, the allocator and libraries that count threads read when they are loaded: only a run that states it is told apart. */
const readWhenLoaded = /^(LD_|GLIBC_TUNABLES$|MALLOC_|OMP_|OPENBLAS_|MKL_)/

/** Only what it does just as a python3 that is started: code, or a file, and nothing that is an option. */
export function canBecome({ argv, env }: Pick<StartRequest, 'argv' | 'env'>, { startedAs = 'python3', executable, env: own }: WaitingPython): boolean {
  const [asked] = argv
  const isIt = asked === executable || (asked === startedAs && (startedAs.includes('/') || env.PATH === own.PATH))
  const names = new Set([...Object.keys(env), ...Object.keys(own)].filter((name) => readAtStart.test(name) || (name in env && readWhenLoaded.test(name))))
  return isIt && isPlain(argv) && [...names].every((name) => env[name] === own[name])
}

function isPlain([, first = '', code]: readonly unknown[]): boolean {
  return first === '-c' ? code !== undefined : typeof first === 'string' && first.endsWith('.py') && !first.startsWith('-')
}

/** The program of a run of which the next of its kind can be begun before it is asked for; undefined for any other, and for what is no request at all. */
export function pythonToBegin(request: unknown, spec: Pick<Spec, 'env' | 'user'>): string | undefined {
  const { command, env, user = spec.user, stdin, terminal, limits } = Object(request) as Partial<RunRequest>
  const [program] = Array.isArray(command) ? command : []
  if (typeof program !== 'string' || !/(^|\/)python3?$/.test(program) || !isPlain(command as unknown[])) return undefined
  if (stdin || terminal || user !== spec.user || Object.keys(Object(limits) as object).length > 0) return undefined
  const names = [...Object.keys(spec.env), ...Object.keys(Object(env) as object)]
  return names.some((name) => readAtStart.test(name) || readWhenLoaded.test(name)) ? undefined : program
}
