/** The difference of two texts as patches show it: lines with three of their neighbours, by the shortest way from one to the other. */
import { type Edit, hunksOf } from './unified-diff-hunks.js'

export interface DiffBounds {
  /** Texts of more lines are not compared. */
  readonly mostLines: number
  /** Nor those that differ in more. */
  readonly mostEdits: number
  /** Shared by all that are compared with it: how many steps of the comparison are left. What would take more is not compared. */
  readonly work?: { steps: number }
}

const defaultBounds: DiffBounds = { mostLines: 20_000, mostEdits: 1000 }

/** The lines of the hunks; undefined when the texts are beyond the bounds. */
export function unifiedDiff(before: string, after: string, bounds: DiffBounds = defaultBounds): string[] | undefined {
  const [old, now] = [linesOf(before), linesOf(after)]
  if (old.length > bounds.mostLines || now.length > bounds.mostLines) return undefined
  const edits = editsBetween(old, now, bounds)
  return edits && hunksOf(edits)
}

const noNewline = '\\ No newline at end of file'

/** A text whose last line has no end differs from one that has. */
function linesOf(text: string): string[] {
  if (text === '') return []
  const lines = text.split('\n')
  const last = lines.pop() ?? ''
  return last === '' ? lines : [...lines, `${last}\n${noNewline}`]
}

/** What both begin and end with needs no looking for. */
function editsBetween(old: readonly string[], now: readonly string[], bounds: DiffBounds): Edit[] | undefined {
  const shorter = Math.min(old.length, now.length)
  let start = 0
  while (start < shorter && old[start] === now[start]) start += 1
  let end = 0
  while (end < shorter - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1
  const inner = innerEdits(old.slice(start, old.length - end), now.slice(start, now.length - end), bounds)
  const same = (text: string): Edit => ({ kind: ' ', text })
  return inner && [...old.slice(0, start).map(same), ...inner, ...old.slice(old.length - end).map(same)]
}

function innerEdits(old: readonly string[], now: readonly string[], bounds: DiffBounds): Edit[] | undefined {
  if (old.length === 0) return now.map((text) => ({ kind: '+', text }))
  if (now.length === 0) return old.map((text) => ({ kind: '-', text }))
  const numbers = new Map<string, number>()
  const numbered = (lines: readonly string[]): Int32Array =>
    Int32Array.from(lines, (line) => numbers.get(line) ?? (numbers.set(line, numbers.size), numbers.size - 1))
  const sides: Sides = { old: numbered(old), now: numbered(now) }
  const rows = rowsBetween(sides, bounds)
  return rows && traced({ rows, old, now })
}

/** Lines as numbers: equal lines have equal ones. */
interface Sides {
  readonly old: Int32Array
  readonly now: Int32Array
}

/** Myers: the furthest line that so many edits reach on each diagonal, one row for each number of edits, with room for its every second diagonal. */
function rowsBetween({ old, now }: Sides, { mostEdits, work = { steps: Infinity } }: DiffBounds): Int32Array[] | undefined {
  const rows: Int32Array[] = []
  for (let edits = 0; edits <= mostEdits; edits += 1) {
    const row = new Int32Array(edits + 1)
    rows.push(row)
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const start = edits === 0 ? 0 : startOn(diagonal, edits, rows[edits - 1] as Int32Array)
      let x = start
      while (x < old.length && x - diagonal < now.length && old[x] === now[x - diagonal]) x += 1
      row[(diagonal + edits) / 2] = x
      work.steps -= 1 + x - start
      if (x >= old.length && x - diagonal >= now.length) return rows
    }
    if (work.steps < 0) return undefined
  }
  return undefined
}

/** Of the row before. */
function reached(row: Int32Array, diagonal: number): number {
  return row[(diagonal + row.length - 1) / 2] ?? -1
}

/** Down (a line more) rather than right (a line less), whichever comes from further on. */
function isDown(diagonal: number, edits: number, before: Int32Array): boolean {
  return diagonal === -edits || (diagonal !== edits && reached(before, diagonal - 1) < reached(before, diagonal + 1))
}

function startOn(diagonal: number, edits: number, before: Int32Array): number {
  return isDown(diagonal, edits, before) ? reached(before, diagonal + 1) : reached(before, diagonal - 1) + 1
}

interface Trace {
  readonly rows: readonly Int32Array[]
  readonly old: readonly string[]
  readonly now: readonly string[]
}

/** The way back from both ends. */
function traced({ rows, old, now }: Trace): Edit[] {
  const edits: Edit[] = []
  let [x, y] = [old.length, now.length]
  for (let step = rows.length - 1; step >= 0; step -= 1) {
    const before = rows[step - 1]
    const diagonal = x - y
    const start = before ? startOn(diagonal, step, before) : 0
    for (; x > start && y > start - diagonal; x -= 1, y -= 1) edits.push({ kind: ' ', text: old[x - 1] ?? '' })
    if (!before) break
    const isMore = isDown(diagonal, step, before)
    edits.push(isMore ? { kind: '+', text: now[y - 1] ?? '' } : { kind: '-', text: old[x - 1] ?? '' })
    if (isMore) y -= 1
    else x -= 1
  }
  return edits.reverse()
}
