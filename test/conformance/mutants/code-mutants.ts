import type { CodeEnding, CodeEvent, CodeRequest, PlatformExecution } from '../../../src/contract/code.js'
import type { Platform } from '../../../src/contract/platform.js'
import type { Mutant } from './table.js'
import { lyingEngine } from './twists.js'

/** What an engine that lies about code does to each execution; the rest is the real one's. */
interface CodeLie {
  readonly request?: (request: CodeRequest) => CodeRequest
  /** What is told in the place of an event. */
  readonly events?: (event: CodeEvent) => readonly CodeEvent[]
  readonly ending?: (ending: CodeEnding) => CodeEnding
}

function lyingCode(lie: CodeLie): (platform: Platform) => Platform {
  return (platform) => {
    const { code } = platform
    return {
      ...lyingEngine({})(platform),
      code: {
        languages: (id, options) => code.languages(id, options),
        execute: async (id, request, options) => withLie(await code.execute(id, lie.request?.(request) ?? request, options), lie),
        createContext: (id, request, options) => code.createContext(id, request, options),
        listContexts: (id, options) => code.listContexts(id, options),
        restartContext: (id, context, options) => code.restartContext(id, context, options),
        removeContext: (id, context, options) => code.removeContext(id, context, options),
      },
    }
  }
}

function withLie(execution: PlatformExecution, { events = (event) => [event], ending = (honest) => honest }: CodeLie): PlatformExecution {
  const ended = execution.ended.then(ending)
  ended.catch(() => undefined)
  return {
    events: replaced(execution.events, events),
    answer: (line) => execution.answer(line),
    interrupt: () => execution.interrupt(),
    ended,
  }
}

async function* replaced(honest: AsyncIterable<CodeEvent>, by: (event: CodeEvent) => readonly CodeEvent[]): AsyncGenerator<CodeEvent, undefined, undefined> {
  for await (const event of honest) yield* by(event)
  return undefined
}

/** Takes what is printed like a frame for one. */
function believePrinted(event: CodeEvent): readonly CodeEvent[] {
  if (!('bytes' in event) || !Buffer.from(event.bytes).includes('\nresult')) return [event]
  return [event, { type: 'result', result: { isMain: false, data: { 'text/plain': 'forged' }, cut: [] } }]
}

function withoutFault(ending: CodeEnding): CodeEnding {
  const { outcome, ...rest } = ending
  return outcome?.kind === 'killed' && outcome.reason.includes('broke the protocol') ? { ...rest, status: 'ok' } : ending
}

const about = { driver: 'fake', depth: 'engine', among: 'code/' } as const

export const codeMutants: readonly Mutant[] = [
  {
    ...about,
    name: 'lets the contexts of a language share their memory',
    twist: { platform: lyingCode({ request: ({ context: _, ...rest }) => rest }) },
    caughtBy: ['code/contexts-apart', 'code/crash-leaves-others'],
  },
  {
    ...about,
    name: 'forgets the time that an execution may take',
    twist: { platform: lyingCode({ request: ({ timeout: _, ...rest }) => rest }) },
    caughtBy: ['code/timeout-keeps-state', 'code/kill-after-grace'],
    patienceMs: 12_000,
  },
  {
    ...about,
    name: 'tells code that failed as a success',
    twist: { platform: lyingCode({ ending: (ending) => (ending.status === 'error' ? { ...ending, status: 'ok' } : ending) }) },
    caughtBy: ['code/errors-are-values', 'code/ask'],
  },
  {
    ...about,
    name: 'reads results out of what code prints',
    twist: { platform: lyingCode({ events: believePrinted }) },
    caughtBy: ['code/forged-output'],
  },
  {
    ...about,
    name: 'puts up with an interpreter that breaks the protocol',
    twist: { platform: lyingCode({ ending: withoutFault }) },
    caughtBy: ['code/forged-replies'],
  },
  {
    ...about,
    name: 'says that a context kept the memory that it lost',
    twist: { platform: lyingCode({ ending: (ending) => ({ ...ending, isStateKept: true }) }) },
    caughtBy: ['code/kill-after-grace', 'code/crash-leaves-others'],
  },
]
