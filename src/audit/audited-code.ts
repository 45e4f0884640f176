import type { PlatformCode, PlatformExecution } from '../contract/code.js'
import type { Acts, Begun } from './acts.js'
import { shownRequest, shownValue } from './shown.js'

export function auditedCode(code: PlatformCode, acts: Acts): PlatformCode {
  const context = (id: string, details: Readonly<Record<string, string>>) => ({ sandbox: id, details })
  return {
    languages: (id, options) => acts.seeing(() => code.languages(id, options)),
    listContexts: (id, options) => acts.seeing(() => code.listContexts(id, options)),
    execute: async (id, request, options) => {
      const begun = await acts.begin('code.execute', { sandbox: id, details: shownRequest(request, acts.settings) })
      try {
        const execution = await code.execute(id, request, options)
        tellExecution(execution, begun)
        return execution
      } catch (error) {
        begun.failed(error)
        throw error
      }
    },
    createContext: (id, request, options) =>
      acts.doing(
        'code.context',
        { sandbox: id, details: { create: shownRequest(request ?? {}, acts.settings) } },
        {
          effect: () => code.createContext(id, request, options),
          ending: (info) => ({ details: { context: info.id } }),
        },
      ),
    restartContext: (id, name, options) => acts.doing('code.context', context(id, { restart: name }), { effect: () => code.restartContext(id, name, options) }),
    removeContext: (id, name, options) => acts.doing('code.context', context(id, { remove: name }), { effect: () => code.removeContext(id, name, options) }),
  }
}

function tellExecution({ ended }: PlatformExecution, begun: Begun): void {
  ended.then(
    ({ status, number, wallMs, error, outcome }) =>
      begun.ok({
        details: {
          status,
          number,
          wallMs: Math.round(wallMs),
          ...(error && { error: error.name.slice(0, 200) }),
          ...(outcome && { outcome: shownValue(outcome) }),
        },
      }),
    (error: unknown) => begun.failed(error),
  )
}
