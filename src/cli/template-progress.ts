/** What a build is doing, on stderr: one line that is drawn again at a terminal, otherwise a line for each phase. */
import type { BuildEvent, BuildPhase } from '../contract/templates.js'
import { escapeControls, say } from './print.js'

export interface Progress extends Disposable {
  readonly tell: (event: BuildEvent) => void
}

const words: Readonly<Record<BuildPhase, string>> = {
  waiting: 'waiting for another build',
  lists: 'reading the lists of packages',
  choosing: 'choosing packages',
  downloading: 'downloading',
  verifying: 'verifying every package',
  unpacking: 'unpacking',
  finishing: 'finishing in a cell',
  hashing: 'writing down every file',
  checking: 'trying it in a cell',
  keeping: 'keeping it',
  asking: 'asking for the image',
  reading: 'reading layers',
  running: 'running',
  copying: 'copying',
}

const drawnEveryMs = 100
const barWidth = 20
const clearLine = '\r\u001b[K'

export function showProgress({ isQuiet }: { readonly isQuiet: boolean }): Progress {
  if (isQuiet) return { tell: () => undefined, [Symbol.dispose]: () => undefined }
  return process.stderr.isTTY && process.env.TERM !== 'dumb' ? drawn() : told()
}

function told(): Progress {
  return {
    tell: (event) => {
      if (event.type === 'note') say(event.text)
      else if (event.type === 'output') process.stderr.write(escapeOutput(event.text))
      else if (event.type === 'phase') say(`${words[event.phase]}${event.detail === undefined ? '' : ` (${event.detail})`}`)
    },
    [Symbol.dispose]: () => undefined,
  }
}

function drawn(): Progress {
  let isOver = false
  let drawnAt = 0
  const draw = (event: Exclude<BuildEvent, { type: 'note' | 'output' }>): void => {
    const now = Date.now()
    if (isOver || (event.type === 'progress' && now - drawnAt < drawnEveryMs)) return
    drawnAt = now
    process.stderr.write(`${clearLine}${lineOf(event).slice(0, Math.max(20, process.stderr.columns - 1))}`)
  }
  return {
    tell: (event) => {
      if (event.type === 'note') {
        process.stderr.write(clearLine)
        say(event.text)
      } else if (event.type === 'output') process.stderr.write(`${clearLine}${escapeOutput(event.text)}`)
      else draw(event)
    },
    [Symbol.dispose]: () => {
      if (!isOver) process.stderr.write(clearLine)
      isOver = true
    },
  }
}

/** `unpacking  ████████░░░░  40 %  bash`. */
function lineOf(event: Exclude<BuildEvent, { type: 'note' | 'output' }>): string {
  const detail = event.detail === undefined ? '' : `  ${escapeControls(event.detail)}`
  const share = event.type === 'progress' && Number.isFinite(event.fraction) ? event.fraction : undefined
  if (share === undefined) return `${words[event.phase]}${detail}`
  const full = Math.round(share * barWidth)
  const bar = `${'█'.repeat(full)}${'░'.repeat(barWidth - full)}`
  return `${words[event.phase].padEnd(24)} ${bar} ${String(Math.floor(share * 100)).padStart(3)} %${detail}`
}

/** It is a stranger's program that prints: lines stay lines, and nothing moves the cursor. */
function escapeOutput(text: string): string {
  return text
    .split(/\r?\n|\r/)
    .map((line) => escapeControls(line))
    .join('\n')
}
