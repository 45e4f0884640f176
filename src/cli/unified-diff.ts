/** The difference of two texts as patches show it: lines with three of their neighbours, by the shortest way from one to the other. */

export interface DiffBounds {
  /** Texts of more lines are not compared. */
  readonly mostLines: number
  /** Nor those that differ in more. */
  readonly mostEdits: number
}

const defaultBounds: DiffBounds = { mostLines: 20_000, mostEdits: 1000 }
const neighbours = 3

type Edit = { readonly kind: ' ' | '+' | '-'; readonly text: string }

/** The lines of the hunks; undefined when the texts are beyond the bounds. */
export function unifiedDiff(before: string, after: string, bounds: DiffBounds = defaultBounds): string[] | undefined {
  const [old, now] = [linesOf(before), linesOf(after)]
  if (old.length > bounds.mostLines || now.length > bounds.mostLines) return undefined
  const edits = editsBetween(old, now, bounds.mostEdits)
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

/** Myers: the furthest line that so many edits reach on each diagonal, one row for each number of edits. */
function editsBetween(old: readonly string[], now: readonly string[], most: number): Edit[] | undefined {
  const rows: Map<number, number>[] = []
  let reach = new Map<number, number>([[1, 0]])
  for (let edits = 0; edits <= most; edits += 1) {
    rows.push(reach)
    const next = new Map(reach)
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const x = followed({ x: startOn(diagonal, edits, reach), diagonal, old, now })
      next.set(diagonal, x)
      if (x >= old.length && x - diagonal >= now.length) return traced({ rows, old, now })
    }
    reach = next
  }
  return undefined
}

/** Down (a line more) or right (a line less), whichever comes from further on. */
function startOn(diagonal: number, edits: number, reach: ReadonlyMap<number, number>): number {
  const [below, above] = [reach.get(diagonal - 1) ?? -1, reach.get(diagonal + 1) ?? -1]
  return diagonal === -edits || (diagonal !== edits && below < above) ? above : below + 1
}

interface Following {
  readonly x: number
  readonly diagonal: number
  readonly old: readonly string[]
  readonly now: readonly string[]
}

function followed({ x, diagonal, old, now }: Following): number {
  let at = x
  while (at < old.length && at - diagonal < now.length && old[at] === now[at - diagonal]) at += 1
  return at
}

interface Trace {
  readonly rows: readonly ReadonlyMap<number, number>[]
  readonly old: readonly string[]
  readonly now: readonly string[]
}

/** The way back from both ends. */
function traced({ rows, old, now }: Trace): Edit[] {
  const edits: Edit[] = []
  let [x, y] = [old.length, now.length]
  for (let step = rows.length - 1; step >= 0; step -= 1) {
    const reach = rows[step] as ReadonlyMap<number, number>
    const diagonal = x - y
    const start = step === 0 ? 0 : startOn(diagonal, step, reach)
    for (; x > start && y > start - diagonal; x -= 1, y -= 1) edits.push({ kind: ' ', text: old[x - 1] ?? '' })
    if (step === 0) break
    const isMore = diagonal === -step || (diagonal !== step && (reach.get(diagonal - 1) ?? -1) < (reach.get(diagonal + 1) ?? -1))
    edits.push(isMore ? { kind: '+', text: now[y - 1] ?? '' } : { kind: '-', text: old[x - 1] ?? '' })
    if (isMore) y -= 1
    else x -= 1
  }
  return edits.reverse()
}

function hunksOf(edits: readonly Edit[]): string[] {
  const wanted = edits.map((_, index) => edits.slice(Math.max(0, index - neighbours), index + neighbours + 1).some(({ kind }) => kind !== ' '))
  const lines: string[] = []
  const at = { old: 1, now: 1 }
  for (let index = 0; index < edits.length; ) {
    const end = wanted[index] === true ? endOf(wanted, index) : index + 1
    const hunk = edits.slice(index, end)
    const [removed, added] = [hunk.filter(({ kind }) => kind !== '+').length, hunk.filter(({ kind }) => kind !== '-').length]
    if (wanted[index] === true) {
      lines.push(`@@ -${span(at.old, removed)} +${span(at.now, added)} @@`)
      lines.push(...hunk.flatMap(({ kind, text }) => `${kind}${text}`.split('\n')))
    }
    at.old += removed
    at.now += added
    index = end
  }
  return lines
}

function endOf(wanted: readonly boolean[], from: number): number {
  const end = wanted.indexOf(false, from)
  return end === -1 ? wanted.length : end
}

/** Of nothing the line before is named. */
function span(start: number, count: number): string {
  return count === 1 ? `${start}` : `${count === 0 ? start - 1 : start},${count}`
}
