/** The changed places of a text, each with the lines around it. */

const neighbours = 3

export interface Edit {
  readonly kind: ' ' | '+' | '-'
  readonly text: string
}

export function hunksOf(edits: readonly Edit[]): string[] {
  const wanted = isNearChange(edits)
  const lines: string[] = []
  const at = { old: 1, now: 1 }
  for (let index = 0; index < edits.length; ) {
    const end = wanted[index] === true ? endOf(wanted, index) : index + 1
    const hunk = edits.slice(index, end)
    const [removed, added] = [hunk.filter(({ kind }) => kind !== '+').length, hunk.filter(({ kind }) => kind !== '-').length]
    if (wanted[index] === true) {
      lines.push(`@@ -${span(at.old, removed)} +${span(at.now, added)} @@`)
      for (const { kind, text } of hunk) lines.push(...`${kind}${text}`.split('\n'))
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

function isNearChange(edits: readonly Edit[]): boolean[] {
  const wanted = edits.map(() => false)
  for (const [index, { kind }] of edits.entries()) {
    if (kind === ' ') continue
    wanted.fill(true, Math.max(0, index - neighbours), index + neighbours + 1)
  }
  return wanted
}
