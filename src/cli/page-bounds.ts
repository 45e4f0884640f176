/** How much of a page of changes is shown before the rest is only counted. */
export interface PageBounds {
  /** Of the list of what was changed, and of what cannot be taken over. */
  readonly names: number
  /** Of all differences together, and of one file's. */
  readonly lines: number
  readonly linesOfFile: number
  /** Of one line, or one name. */
  readonly characters: number
  /** What finding the differences may take. */
  readonly bytesRead: number
  readonly steps: number
}

/** After a run, at whose end it stands. */
export const shortPage: PageBounds = { names: 2000, lines: 200, linesOfFile: 200, characters: 500, bytesRead: 32 * 2 ** 20, steps: 4_000_000 }

/** For whoever asks to see it. */
export const longPage: PageBounds = { names: 2000, lines: 5000, linesOfFile: 1000, characters: 1000, bytesRead: 256 * 2 ** 20, steps: 40_000_000 }

export const wholePage: PageBounds = {
  names: Infinity,
  lines: Infinity,
  linesOfFile: Infinity,
  characters: Infinity,
  bytesRead: Infinity,
  steps: Infinity,
}

/** Its beginning, and how much more there is. */
export function clipped(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}… (${text.length - most} more characters)`
}
