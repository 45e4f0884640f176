import { escapeControls } from './print.js'

const between = '  '

/** Lines with a head, each column as wide as what is widest in it. Nothing in a cell drives a terminal or breaks a line. */
export function tableOf(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [heads, ...rows.map((row) => row.map(escapeControls))]
  const widths = heads.map((_, column) => Math.max(...all.map((row) => widthOf(row[column] ?? ''))))
  const line = (row: readonly string[]): string => row.map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell))).join(between)
  return all.map((row) => `${line(row).trimEnd()}\n`).join('')
}

/** In characters, as near as that can be told without knowing the terminal. */
function widthOf(text: string): number {
  return Array.from(text).length
}
