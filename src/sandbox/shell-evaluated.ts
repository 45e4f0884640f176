/** Where a shell evaluates a word once more after its quotes are gone: as arithmetic, in which `a[$(id)]` runs a command, or as a command. */

export interface Evaluation {
  readonly where: string
  /** Of arithmetic: a whole number is only a number there. */
  readonly takesNumbers: boolean
}

/** What a value is to this look at the text before it: a letter. */
export const valueMark = 'v'

const arithmetic: Evaluation = { where: 'in arithmetic', takesNumbers: true }
const nameOfVariable: Evaluation = { where: 'in the name of a variable', takesNumbers: false }

const naming = ['declare', 'typeset', 'local', 'export', 'readonly', 'unset', 'read', 'mapfile', 'readarray']
const leading = ['then', 'do', 'else', 'elif', 'if', 'while', 'until', '!', '{', 'builtin', 'command', 'exec']
const quotedOrComment = /\\[\s\S]|'[^']*'|"(?:\\[\s\S]|[^"\\])*"|(?<![^\s;&|()])#[^\n]*/g
const bracket = /\$?\(\(|\)\)|\$\[|\$\{|\$?\(|(?<=^|\s)\[\[(?=\s)|\]\]|[)\]}]/g
const comparison = '-(?:eq|ne|lt|le|gt|ge)'

/** Between the text before a value and the one after it, as far as it can be seen from them; undefined where a word is only a word. */
export function evaluationBetween(textBefore: string, after: string): Evaluation | undefined {
  const before = textBefore.replaceAll(quotedOrComment, (quoted) => (quoted.startsWith('#') ? '' : 'q'))
  const open = openBrackets(before)
  if (open.includes('((') || open.includes('$[')) return arithmetic
  if (open.includes('${')) return { where: 'inside ${ }', takesNumbers: true }
  if (open.includes('[[') && (new RegExp(`\\s${comparison}\\s+\\S*$`).test(before) || new RegExp(`^\\S*\\s+${comparison}\\s`).test(after))) return arithmetic
  if (/(?:\[\[?|test)\s(?:.*\s)?-[vR]\s+\S*$/.test(before)) return nameOfVariable
  if (/(?:^|[\s;&|(])[A-Za-z_]\w*\[[^\]\s]*$/.test(before)) return { where: 'in the index of an array', takesNumbers: true }
  return ofCommand(before)
}

function openBrackets(text: string): readonly string[] {
  const open: string[] = []
  const closes = { '))': '((', ']': '$[', '}': '${', ']]': '[[', ')': '(' } as const
  for (const [found] of text.matchAll(bracket)) {
    const opener = closes[found as keyof typeof closes] as string | undefined
    if (opener === undefined) open.push(found.replace('$(', '('))
    else if (open.at(-1) === opener) open.pop()
    // Two that were opened one by one.
    else if (found === '))') open.splice(Math.max(0, open.length - 2))
    // `((a); b)` were two subshells.
    else if (found === ')' && open.at(-1) === '((') open.splice(-1, 1, '(')
  }
  return open
}

/** The commands that evaluate their arguments, or take them for names, in which an index is evaluated. */
function ofCommand(before: string): Evaluation | undefined {
  const words = (/[^\n;&|()]*$/.exec(before)?.[0] ?? '').trimStart().split(/\s+/)
  const at = words.findIndex((word) => !/^[A-Za-z_]\w*\+?=/.test(word) && !leading.includes(word))
  const name = words[at]
  const last = words.at(-1) ?? ''
  if (name === undefined || at === words.length - 1 || /[<>]\s*\S*$/.test(before)) return undefined
  if (name === 'let') return arithmetic
  if (name === 'eval' || name === 'trap') return { where: `in what ${name} evaluates`, takesNumbers: false }
  if (name === 'printf' && /\s-v\s*\S*$/.test(before)) return nameOfVariable
  if (!naming.includes(name)) return undefined
  if (words.some((word) => /^-\w*[in]/.test(word)) && name !== 'read') return arithmetic
  // `export NAME=…` takes a word; so do the options of read.
  const isWord = /^[A-Za-z_]\w*\+?=/.test(last) || (name === 'read' && /^-\w*[pdtnNu]$/.test(words.at(-2) ?? ''))
  return isWord ? undefined : nameOfVariable
}
