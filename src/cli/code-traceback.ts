import type { CodeError } from '../contract/code.js'
import type { Colors } from './print.js'
import { escapeControls } from './print.js'

/** Text of a guest in lines of ours: they stay lines, and nothing in them acts on a terminal. */
export function harmlessLines(text: string): string {
  return text
    .split('\n')
    .map((line) => line.split('\t').map(escapeControls).join('\t'))
    .join('\n')
}

const frame = /^\s+(?:File "|at )/
const carets = /^\s*[\^~]+\s*$/

/** The user's own frames, the place under its carets, and what it is; undefined where there is nothing to say that the code has not said itself. */
export function tracebackText(error: CodeError, colors: Colors): string | undefined {
  // A command that failed has said why.
  if (error.name === 'ExitStatus') return undefined
  const summary = `${error.name}${error.value === '' ? '' : `: ${error.value}`}`
  const text = error.traceback.trim() === '' ? summary : error.traceback.replace(/\s+$/, '')
  return `${harmlessLines(text)
    .split('\n')
    .map((line) => painted(line, error.name, colors))
    .join('\n')}\n`
}

function painted(line: string, name: string, colors: Colors): string {
  if (carets.test(line)) return colors.red(line)
  if (frame.test(line)) return colors.cyan(line)
  return line === name || line.startsWith(`${name}: `) ? colors.bold(colors.red(line)) : line
}
