/** What somebody may have meant. */

const mostEdits = 3
/** Of a word's length: more than that is another word. */
const mostOfLength = 0.4

/** Those of the words that are nearest to what was typed, if any is near; in their order. */
export function nearWords(typed: string, words: readonly string[]): string[] {
  let nearest = mostEdits
  let found: string[] = []
  for (const word of new Set(words)) {
    const edits = editsBetween(typed.toLowerCase(), word.toLowerCase())
    if (edits > nearest || edits > Math.max(typed.length, word.length) * mostOfLength) continue
    if (edits < nearest) found = []
    nearest = edits
    found.push(word)
  }
  return found
}

/** ' (did you mean a, or b?)', or nothing. */
export function meant(words: readonly string[]): string {
  return words.length === 0 ? '' : ` (did you mean ${words.slice(0, 3).join(', or ')}?)`
}

/** Letters to be added, left out, replaced, or exchanged with their neighbour. */
function editsBetween(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > mostEdits) return mostEdits + 1
  let [before, row]: [number[], number[]] = [[], Array.from({ length: other.length + 1 }, (_, column) => column)]
  for (let line = 1; line <= one.length; line += 1) {
    const next = [line]
    for (let column = 1; column <= other.length; column += 1) {
      const isSame = one[line - 1] === other[column - 1]
      const ways = [at(row, column) + 1, at(next, column - 1) + 1, at(row, column - 1) + (isSame ? 0 : 1)]
      const isExchanged = line > 1 && column > 1 && one[line - 1] === other[column - 2] && one[line - 2] === other[column - 1]
      if (isExchanged) ways.push(at(before, column - 2) + 1)
      next.push(Math.min(...ways))
    }
    ;[before, row] = [row, next]
  }
  return at(row, other.length)
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY
}
