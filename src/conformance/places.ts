import { ensure } from './check.js'
import type { Subject, SubjectSandbox } from './subject.js'

const absent = (): never => {
  throw new Error('a run in a liner is by itself')
}

/** Every run of it in a liner. */
export function inLiners(subject: Subject): Subject {
  return {
    name: `${subject.name}, in liners`,
    depth: subject.depth,
    probe: subject.probe,
    host: subject.host,
    open: async (spec = {}): Promise<SubjectSandbox> => {
      ensure(subject.lined !== undefined, 'what says that it has liners must give them', subject.name)
      const lined = await subject.lined(spec)
      const rest = { start: absent, pause: absent, resume: absent, exchange: absent, files: {} as SubjectSandbox['files'] }
      return { ...rest, run: (command, options) => lined.run(command, options), close: () => lined.close() }
    },
  }
}

/** Every program of it by in-cell root. */
export function asRoot(subject: Subject): Subject {
  return {
    ...plainly(subject),
    name: `${subject.name}, as root`,
    open: async (spec, options) => {
      const sandbox = await subject.open(spec, options)
      return {
        ...sandbox,
        run: (command, runOptions) => sandbox.run(command, { ...runOptions, user: 'root' }),
        start: (command, startOptions) => sandbox.start(command, { ...startOptions, user: 'root' }),
      }
    },
  }
}

export interface Sharing extends AsyncDisposable {
  readonly subject: Subject
  /** The next case gets another: who knows what this one left. */
  forget(): Promise<void>
}

/** One sandbox for all who open one, until it is forgotten. The first who opens says what it is. */
export function sharing(subject: Subject): Sharing {
  let opened: Promise<SubjectSandbox> | undefined
  const forget = async (): Promise<void> => {
    const last = opened
    opened = undefined
    await last?.then((sandbox) => sandbox.close()).catch(() => undefined)
  }
  return {
    subject: {
      ...plainly(subject),
      open: async (spec, options) => {
        const sandbox = await (opened ??= subject.open(spec, options))
        return { ...sandbox, close: () => Promise.resolve() }
      },
    },
    forget,
    [Symbol.asyncDispose]: forget,
  }
}

function plainly(subject: Subject): Subject {
  return {
    name: subject.name,
    depth: subject.depth,
    probe: subject.probe,
    host: subject.host,
    open: (spec, options) => subject.open(spec, options),
    ...(subject.pool && { pool: subject.pool.bind(subject) }),
    ...(subject.lined && { lined: subject.lined.bind(subject) }),
  }
}
