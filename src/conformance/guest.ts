import type { SpecInput } from '../contract/spec.js'
import { ensureExited } from './check.js'
import type { Subject, SubjectRunOptions, SubjectSandbox } from './subject.js'

/** Every guest program ends by itself within this time, so that a subject that cannot stop one does not keep it. */
const guestSeconds = 40

/** Isolated and without site-packages: it starts in a third of the time and reads nothing of a user's set-up. */
export function python(script: string, ...args: readonly string[]): string[] {
  return ['/usr/bin/python3', '-I', '-S', '-c', script, ...args]
}

/** Runs a script that prints one JSON value, and gives it back. */
export async function askPython<T>(
  sandbox: SubjectSandbox,
  script: string,
  options: SubjectRunOptions & { readonly args?: readonly string[] } = {},
): Promise<T> {
  const { args = [], ...runOptions } = options
  const result = await sandbox.run(python(script, ...args), runOptions)
  return JSON.parse(ensureExited(result)) as T
}

/** A sleep that can be found from outside by its marker, whatever process namespace it is in. */
export function markedSleep(): { readonly marker: string; readonly argv: string[] } {
  const marker = `${guestSeconds}.${randomDigits()}`
  return { marker, argv: ['sleep', marker] }
}

/** Digits only: it has to pass for a number of seconds. The last is never a zero, which would be dropped when read as one. */
function randomDigits(): string {
  const words = crypto.getRandomValues(new Uint32Array(2))
  return `${[...words].map((word) => String(word).padStart(10, '0')).join('')}7`
}

export function randomName(): string {
  return `gbx${[...crypto.getRandomValues(new Uint32Array(3))].map((word) => word.toString(36)).join('')}`
}

/** Opens a sandbox, uses it and closes it whatever happens. Without a spec there is room for what the case is about. */
export async function withSandbox<T>(subject: Subject, use: (sandbox: SubjectSandbox) => Promise<T>, spec: SpecInput = ampleSpec(subject)): Promise<T> {
  const sandbox = await subject.open(spec)
  try {
    return await use(sandbox)
  } finally {
    await sandbox.close()
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}

/** Looks until it is so, or gives up: much later than it takes on a machine that has nothing else to do. */
export async function until(isSo: () => Promise<boolean>, withinMs = 30_000): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (performance.now() < deadline) {
    if (await isSo()) return true
    await pause(20)
  }
  return isSo()
}

/** A spec that does not hold back a case that is about something else. Stated only where it counts: a limit that nothing enforces would be refused. */
function ampleSpec({ probe }: Subject): SpecInput {
  return { limits: { ...(probe.limits.processes.enforced && { processes: 400 }), ...(probe.limits.cpus.enforced && { cpus: 4 }) } }
}
