/** Whether code that is being typed is whole, or goes on in the next line. A guess that errs towards running: the interpreter tells what it misses. */
import type { Language } from '../contract/code.js'

export interface Typed {
  readonly text: string
  /** Several lines at once, as pasted: then no blank line is waited for. */
  readonly isPasted: boolean
}

export function isWhole({ text, isPasted }: Typed, language: Language): boolean {
  if (text.trim() === '') return true
  switch (language) {
    case 'python':
      return isWholePython(text, isPasted ? 'pasted' : 'typed')
    case 'javascript':
    case 'typescript':
      return isWholeScript(text)
    case 'bash':
      return isWholeShell(text)
  }
}

const pythonTokens = /"""(?:[^\\]|\\[\s\S])*?"""|'''(?:[^\\]|\\[\s\S])*?'''|"""|'''|"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?|#[^\n]*|[([{]|[)\]}]/g

function isWholePython(text: string, how: 'pasted' | 'typed'): boolean {
  const seen = { depth: 0, isOpen: false }
  // What stands in texts and comments says nothing of where a statement ends.
  const bare = text.replace(pythonTokens, (token) => {
    if (token === '"""' || token === "'''") seen.isOpen = true
    if ('([{'.includes(token)) seen.depth += 1
    if (')]}'.includes(token)) seen.depth -= 1
    if (token.startsWith('#')) return ''
    return /^["']/.test(token) ? 's' : token
  })
  if (seen.isOpen || seen.depth > 0 || /\\\s*$/.test(bare.replace(/\n+$/, ''))) return false
  if (how === 'pasted') return true
  const lines = bare.split('\n')
  const last = lines.at(-1) ?? ''
  const isBlock = lines.some((line) => /:\s*$/.test(line) || /^\s*@/.test(line) || /^[ \t]+\S/.test(line))
  return !isBlock || (lines.length > 1 && last.trim() === '')
}

const scriptTokens =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|\/\*|"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?|`|\\[\s\S]|\$\{|[([{]|[)\]}]|(?<=(?:^|[=(,:[!&|?{};>+\-*%~^\n]|\breturn|\btypeof)\s*)\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\//g

function isWholeScript(text: string): boolean {
  const open: string[] = []
  for (const [token] of text.matchAll(scriptTokens)) {
    const inTemplate = open.at(-1) === '`'
    if (token === '`') {
      if (inTemplate) open.pop()
      else open.push('`')
    } else if (inTemplate) {
      if (token === '${') open.push('{')
    } else if (token === '/*') return false
    else if (token === '${' || '([{'.includes(token)) open.push(token)
    else if (')]}'.includes(token)) open.pop()
  }
  return open.length === 0 && !/(?:=>|[=,+\-*&|?:]|\\)\s*$/.test(text.replace(/\/\/[^\n]*$/, '').replace(/(?:\+\+|--)\s*$/, ''))
}

const openers = new Set(['if', 'case', 'do', '{'])
const closers = new Set(['fi', 'esac', 'done', '}'])
const loops = new Set(['for', 'while', 'until', 'select'])
const before = new Set(['then', 'else', 'elif', 'do', '!', '{', 'if', 'while', 'until', 'time'])

function isWholeShell(text: string): boolean {
  const bare = withoutHeredocs(text)
  if (bare === undefined) return false
  const plain = withoutQuotes(bare)
  if (plain === undefined || /(?:\\|\||&&)\s*$/.test(plain.trimEnd() === plain ? plain : plain.replace(/\n+$/, ''))) return false
  return shellDepth(plain) <= 0
}

/** Undefined while one is open. */
function withoutHeredocs(text: string): string | undefined {
  const kept: string[] = []
  const waiting: { readonly end: string; readonly isIndented: boolean }[] = []
  for (const line of text.split('\n')) {
    const [doc] = waiting
    if (doc) {
      if ((doc.isIndented ? line.replace(/^\t+/, '') : line) === doc.end) waiting.shift()
      continue
    }
    kept.push(line)
    for (const [, dash, quote, end] of line.matchAll(/(?<!<)<<(-?)\s*(["']?)([A-Za-z_]\w*)\2/g)) {
      if (quote !== undefined && end !== undefined) waiting.push({ end, isIndented: dash === '-' })
    }
  }
  return waiting.length > 0 ? undefined : kept.join('\n')
}

const shellQuotes = /\\[\s\S]|'[^']*'|"(?:[^"\\]|\\[\s\S])*"|`[^`]*`|(?<=^|\s)#[^\n]*|['"`]/g

/** Undefined while one is open. */
function withoutQuotes(text: string): string | undefined {
  const seen = { isOpen: false }
  const plain = text.replace(shellQuotes, (token) => {
    if (token.length === 1) seen.isOpen = true
    return token.startsWith('#') || token === '\\\n' ? '' : token === '\\' ? token : 'q'
  })
  return seen.isOpen ? undefined : plain
}

/** How many constructs are open; words count only where a command can begin. */
function shellDepth(text: string): number {
  let depth = 0
  let isStart = true
  let loopsToOpen = 0
  for (const [token] of text.matchAll(/[^\s;&|()]+|[;&|()\n]/g)) {
    if (token === '(') depth += 1
    // A pattern of `case` has one without the other.
    else if (token === ')' && depth > 0 && !inCase(text)) depth -= 1
    else if (isStart && loops.has(token)) loopsToOpen += 1
    else if (isStart && openers.has(token)) {
      depth += 1
      if (token === 'do') loopsToOpen = Math.max(0, loopsToOpen - 1)
    } else if (isStart && closers.has(token)) depth -= 1
    isStart = /^[;&|()\n]$/.test(token) || (isStart && before.has(token))
  }
  return depth + loopsToOpen
}

function inCase(text: string): boolean {
  return /(?:^|[;&|\s])case\s/.test(text)
}
