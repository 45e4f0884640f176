// Edits of a text that add no line and take none, and where a place in the edited text was before.

export class Edits {
  #source
  #edits = []

  /** @param {string} source */
  constructor(source) {
    this.#source = source
  }

  insert(at, text) {
    this.replace(at, at, text)
  }

  /** Line ends within what is replaced are kept. */
  replace(start, end, text) {
    const ends = this.#source.slice(start, end).match(/\r\n|[\n\r\u2028\u2029]/g) ?? []
    this.#edits.push({ start, end, text: text + ends.join(''), order: this.#edits.length })
  }

  blank(start, end) {
    this.replace(start, end, '')
    const edit = this.#edits.at(-1)
    edit.text = this.#source.slice(start, end).replace(/[^\n\r\u2028\u2029]/g, ' ')
  }

  apply() {
    // What is inserted somewhere comes before what replaces the text there.
    const isReplacing = ({ start, end }) => (start === end ? 0 : 1)
    const sorted = [...this.#edits].sort((a, b) => a.start - b.start || isReplacing(a) - isReplacing(b) || a.order - b.order)
    const shifts = []
    const parts = []
    let at = 0
    for (const { start, end, text } of sorted) {
      parts.push(this.#source.slice(at, start), text)
      shifts.push({ start, end, length: text.length })
      at = end
    }
    parts.push(this.#source.slice(at))
    return { code: parts.join(''), placeOf: placesOf(this.#source, shifts) }
  }
}

const lineEnds = /\r\n|[\n\r\u2028\u2029]/g

/** Offsets at which lines begin. @param {string} text */
function lineStarts(text) {
  return [0, ...Array.from(text.matchAll(lineEnds), (end) => end.index + end[0].length)]
}

/** @returns {(line: number, column: number) => { line: number, column: number }} both from 1 */
function placesOf(source, shifts) {
  if (shifts.length === 0) return (line, column) => ({ line, column })
  let starts
  return (line, column) => {
    starts ??= lineStarts(source)
    const begin = starts[line - 1]
    if (begin === undefined) return { line, column }
    const next = starts[line] ?? Number.POSITIVE_INFINITY
    // Where the line begins in the edited text is where its first character went; only what was edited on this line moves a column.
    let moved = 0
    for (const { start, end, length } of shifts) {
      if (start < begin || start >= next || start - begin + moved >= column - 1) continue
      const removed = Math.min(end, next) - start
      moved += Math.min(length, column - 1 - (start - begin + moved)) - removed
    }
    return { line, column: Math.max(1, column - moved) }
  }
}

/** The text of a line, counted from 1. */
export function lineOf(source, line) {
  const starts = lineStarts(source)
  const begin = starts[line - 1]
  return begin === undefined ? undefined : source.slice(begin, starts[line]).replace(/[\n\r\u2028\u2029]+$/, '')
}
