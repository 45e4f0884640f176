/** A session: code line by line in interpreters that remember, until its user leaves. */
import { join } from 'node:path'
import { historyPlace } from '../compose.js'
import type { Language } from '../contract/code.js'
import { readHistory, writeHistory } from './code-history.js'
import { isWhole } from './code-completeness.js'
import { LineReader } from './code-line-reader.js'
import { runCommandLine, type SessionState } from './code-repl-commands.js'
import { CodeSession } from './code-session.js'
import { ShownToPerson } from './code-show.js'
import type { Setting } from './commands/code.js'
import { colorsFor, printFailure, say } from './print.js'
import { startLine } from './streams.js'
import { SandboxError } from '../contract/errors.js'

const shortNames: Readonly<Record<Language, string>> = { python: 'py', javascript: 'js', typescript: 'ts', bash: 'sh' }

export async function converse(setting: Setting, language: Language): Promise<number> {
  const { platform, info, flags, interrupts, out, cwd } = setting
  const historyFile = placeOfHistory()
  const reader = new LineReader(historyFile === undefined ? [] : readHistory(historyFile))
  const showing = new ShownToPerson({ out, quiet: flags.quiet === true })
  const answers = {
    next: async ({ prompt, isSecret }: { readonly prompt: string; readonly isSecret: boolean }): Promise<string | null> => {
      const line = await reader.next(prompt, { isSecret, isRemembered: false })
      reader.rest()
      if (isSecret) process.stdout.write('\n')
      if (line.type === 'interrupted') process.kill(process.pid, 'SIGINT')
      return line.type === 'line' ? line.text : null
    },
    close: () => undefined,
  }
  const session = new CodeSession({ platform, id: info.id, interrupts, showing, answers, cwd })
  const state: SessionState = { session, language, count: 1, done: [], isOver: false, platform, id: info.id, signal: interrupts.signal }
  const leave = (): void => reader.close()
  process.on('exit', leave)
  const stopped = new Promise<never>((_, reject) => interrupts.signal.addEventListener('abort', () => reject(interrupts.signal.reason), { once: true }))
  stopped.catch(() => undefined)
  try {
    if (!flags.quiet) await welcome(state)
    while (!state.isOver) {
      startLine(showing.cursor)
      const source = await Promise.race([readSource(reader, state), stopped])
      reader.rest()
      if (source === undefined) state.isOver = true
      else if (source.trim() !== '') await oneTurn(source, state)
    }
    if (out) await session.writeArtifacts(out, { quiet: flags.quiet === true })
    return 0
  } finally {
    process.off('exit', leave)
    leave()
    if (historyFile !== undefined) writeHistory(historyFile, reader.history)
  }
}

/** Without a place for it there is a session without a history. */
function placeOfHistory(): string | undefined {
  try {
    return join(historyPlace(), 'code')
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    return undefined
  }
}

async function welcome({ platform, id, language, signal }: SessionState): Promise<void> {
  const found = (await platform.code.languages(id, { signal }))[language]
  say(`${language}${found.available ? ` ${found.version}` : ''} in a sandbox of its own; .help tells what else there is, Ctrl-D leaves`)
}

/** One piece of code, or one of our own words; undefined when the user leaves. */
async function readSource(reader: LineReader, state: SessionState): Promise<string | undefined> {
  const colors = colorsFor(process.stdout)
  const name = `${shortNames[state.language]}[${state.count}]`
  const first = `${colors.green(name)}> `
  const further = `${' '.repeat(Math.max(0, name.length - 3))}...> `
  let text: string | undefined
  let isPasted = false
  for (;;) {
    const line = await reader.next(text === undefined ? first : further)
    if (line.type === 'interrupted') return ''
    if (line.type === 'end') {
      process.stdout.write('\n')
      return text === undefined ? undefined : ''
    }
    isPasted ||= line.isPasted
    text = text === undefined ? line.text : `${text}\n${line.text}`
    if (line.isPasted) continue
    if (!text.includes('\n') && /^\.[a-z]/.test(text)) return text
    if (isWhole({ text, isPasted }, state.language)) return text
  }
}

/** What goes wrong is told, and the session goes on as long as there is a sandbox. */
async function oneTurn(source: string, state: SessionState): Promise<void> {
  try {
    if (await runCommandLine(source, state)) return
    const ending = await state.session.run({ code: source, language: state.language, name: 'the code' })
    state.count += 1
    if (ending.status === 'ok') state.done.push({ language: state.language, code: source })
    if (ending.status === 'exit') say(`the code asked to end with ${ending.code ?? 0}; the session goes on, .exit leaves`)
  } catch (error) {
    state.signal.throwIfAborted()
    if (!(error instanceof SandboxError) || ['closed', 'expired', 'broken'].includes(error.code)) throw error
    await printFailure(error, { json: false })
  }
}
