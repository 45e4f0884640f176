/** One table of a TOML file, put in or in the place of the one that was there, while every other line stays as it was. */

export class TomlProblem extends Error {}

export interface TomlTable {
  /** `mcp_servers` and `glovebox` of [mcp_servers.glovebox]. */
  readonly parent: string
  readonly name: string
  readonly lines: readonly string[]
}

export function withTable(text: string, table: TomlTable): string {
  const header = `[${table.parent}.${table.name}]`
  const block = [header, ...table.lines].join('\n')
  const lines = text.split('\n')
  const heads = headersOf(lines)
  refuseOtherForms(lines, heads, table)
  const own = heads.filter(({ name }) => name === `${table.parent}.${table.name}`)
  if (own.length > 1) throw new TomlProblem(`${header} is there twice`)
  const [first] = own
  if (first === undefined) return text.trim() === '' ? `${block}\n` : `${text.trimEnd()}\n\n${block}\n`
  const next = heads.find(({ at }) => at > first.at)?.at ?? lines.length
  const end = lastLineOf(lines.slice(0, next)) + 1
  return [...lines.slice(0, first.at), block, ...lines.slice(end)].join('\n')
}

interface Header {
  readonly at: number
  /** Without the quotes that a key may have. */
  readonly name: string
}

/** The lines that begin a table; what looks like one within a text of several lines is none. */
function headersOf(lines: readonly string[]): readonly Header[] {
  const found: Header[] = []
  let closing: string | undefined
  for (const [at, line] of lines.entries()) {
    if (closing === undefined) {
      const name = /^\s*\[\[?([^\]]+)\]\]?\s*(?:#.*)?$/.exec(line)?.[1]
      if (name !== undefined) found.push({ at, name: bare(name) })
    }
    closing = openTextAfter(line, closing)
  }
  if (closing !== undefined) throw new TomlProblem(`a text that begins with ${closing} does not end`)
  return found
}

/** Which triple quotes are open behind this line. */
function openTextAfter(line: string, before: string | undefined): string | undefined {
  let open = before
  const marks = /"""|'''|"(?:[^"\\]|\\.)*"|'[^']*'|#/g
  for (let found = marks.exec(line); found !== null; found = marks.exec(line)) {
    const [mark] = found
    if (open !== undefined) {
      if (mark === open) open = undefined
    } else if (mark === '#') return undefined
    else if (mark === '"""' || mark === "'''") open = mark
  }
  return open
}

function bare(name: string): string {
  return name
    .split('.')
    .map((part) => part.trim().replace(/^(["'])(.*)\1$/, '$2'))
    .join('.')
}

/** The same can be said in other ways, which are left to whoever chose them. */
function refuseOtherForms(lines: readonly string[], heads: readonly Header[], { parent, name }: TomlTable): void {
  const [firstHead = { at: lines.length }] = heads
  const top = lines.slice(0, firstHead.at)
  if (top.some((line) => new RegExp(`^\\s*"?${parent}"?\\s*[.=]`).test(line))) throw new TomlProblem(`${parent} is written as a key rather than as a table`)
  const inParent = heads.findIndex((head) => head.name === parent)
  if (inParent === -1) return
  const body = lines.slice((heads[inParent]?.at ?? 0) + 1, heads[inParent + 1]?.at)
  if (body.some((line) => new RegExp(`^\\s*"?${name}"?\\s*[.=]`).test(line)))
    throw new TomlProblem(`${parent}.${name} is written as a key rather than as a table`)
}

/** Blank lines and comments before the next table belong to that. */
function lastLineOf(lines: readonly string[]): number {
  for (let at = lines.length - 1; at >= 0; at -= 1) if (!/^\s*(?:#.*)?$/.test(lines[at] ?? '')) return at
  return lines.length - 1
}

/** As TOML writes a text; JSON's form is one of it, but for DEL. */
export function tomlText(text: string): string {
  return JSON.stringify(text).replaceAll('\u007f', '\\u007F')
}
