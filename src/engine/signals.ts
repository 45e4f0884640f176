/** Linux's numbers, the same on x64 and arm64. They belong to the cell's kernel, so the machine this module runs on is not asked. */
const numbers: Readonly<Record<string, number>> = {
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
  SIGSTKFLT: 16,
  SIGCHLD: 17,
  SIGCONT: 18,
  SIGSTOP: 19,
  SIGTSTP: 20,
  SIGTTIN: 21,
  SIGTTOU: 22,
  SIGURG: 23,
  SIGXCPU: 24,
  SIGXFSZ: 25,
  SIGVTALRM: 26,
  SIGPROF: 27,
  SIGWINCH: 28,
  SIGIO: 29,
  SIGPWR: 30,
  SIGSYS: 31,
}

/** Second names of the same numbers. */
const aliases: Readonly<Record<string, string>> = { SIGIOT: 'SIGABRT', SIGPOLL: 'SIGIO', SIGUNUSED: 'SIGSYS' }

const names = new Map(Object.entries(numbers).map(([name, number]) => [number, name]))

export const killSignal = 9
export const processorTimeSignal = 24

/** `SIGTERM`; `SIG40` for a real-time signal, which has no name of its own. */
export function signalName(number: number): string {
  return names.get(number) ?? `SIG${number}`
}

/** Undefined when there is no such signal. */
export function signalNumber(name: string): number | undefined {
  const known = aliases[name] ?? name
  if (Object.hasOwn(numbers, known)) return numbers[known]
  const realTime = Number(/^SIG(\d\d)$/.exec(name)?.[1])
  return realTime >= 32 && realTime <= 64 ? realTime : undefined
}
