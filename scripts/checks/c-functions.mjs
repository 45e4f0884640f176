// Finds functions in C by their braces: a block opened at depth 0 after a closing parenthesis. Comments, strings and character constants are blanked first,
// because they may hold braces.

/** @param {string} text */
function blankOut(text) {
  const hidden = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g
  return text.replace(hidden, (match) => match.replace(/[^\n]/g, ' '))
}

/** @param {string} before the text between the last declaration and the brace */
function functionName(before) {
  const head = before.replace(/^\s*#.*$/gm, '')
  if (!/\)\s*(?:__attribute__\s*\(\(.*\)\)\s*)?$/.test(head)) return undefined
  return head.match(/([A-Za-z_]\w*)\s*\(/)?.[1]
}

/** @param {string} text @param {number} limit @returns {import('./sizes.mjs').Problem[]} */
export function longFunctionsInC(text, limit) {
  const code = blankOut(text)
  /** @type {import('./sizes.mjs').Problem[]} */
  const problems = []
  let depth = 0
  let statementStart = 0
  /** @type {{ name: string, line: number } | undefined} */
  let open
  let line = 1
  for (const [index, character] of [...code].entries()) {
    if (character === '\n') line++
    if (character === '{' && depth++ === 0) {
      const before = code.slice(statementStart, index)
      const name = functionName(before)
      const leading = before.match(/^\s*/)?.[0].length ?? 0
      open = name === undefined ? undefined : { name, line: line - (before.slice(leading).match(/\n/g)?.length ?? 0) }
    }
    if (character === '}' && --depth === 0) {
      const lines = open === undefined ? 0 : line - open.line + 1
      if (open !== undefined && lines > limit) problems.push({ line: open.line, text: `${open.name} has ${lines} lines, and ${limit} are the limit` })
      open = undefined
      statementStart = index + 1
    }
    if (character === ';' && depth === 0) statementStart = index + 1
  }
  return problems
}
