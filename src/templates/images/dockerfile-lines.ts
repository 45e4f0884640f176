/** From the text of a Dockerfile to its instructions, each with the line that it begins at: comments, continued lines, here-documents. */
import { SandboxError } from '../../contract/errors.js'

export interface DockerLine {
  /** From 1. */
  readonly line: number
  /** In capitals. */
  readonly name: string
  /** `--from=build` and the like, in their order. */
  readonly flags: ReadonlyMap<string, readonly string[]>
  /** All behind the flags, continued lines joined. */
  readonly rest: string
  readonly heredocs: readonly HereDocument[]
}

export interface HereDocument {
  readonly name: string
  readonly text: string
  /** Whether its name was without quotes, so that variables in it are replaced. */
  readonly isExpanded: boolean
}

export interface DockerLines {
  readonly lines: readonly DockerLine[]
  /** What escapes: a backslash, unless the file says otherwise. */
  readonly escape: string
}

const mostBytes = 2 ** 20
const withHeredocs = ['RUN', 'COPY', 'ADD']

export function wrong(line: number, what: string): SandboxError {
  return new SandboxError('invalid', `Dockerfile:${line}: ${what.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD')}`, {
    hint: 'glovebox template build --help',
  })
}

/** Throws SandboxError('invalid') that names the line. */
export function readLines(text: string): DockerLines {
  if (text.length > mostBytes) throw wrong(1, `it has more than ${mostBytes} characters`)
  if (text.includes('\0')) throw wrong(1, 'it has a zero byte in it')
  const rows = text.replace(/^\ufeff/, '').split(/\r?\n/)
  const escape = escapeOf(rows)
  const lines: DockerLine[] = []
  for (let at = 0; at < rows.length; ) {
    if (isNothing(rows[at] ?? '')) {
      at += 1
      continue
    }
    const { joined, next } = join(rows, at, escape)
    const { heredocs, after } = readHeredocs(joined, rows, { next, line: at + 1 })
    const parsed = parseLine(joined, at + 1)
    if (parsed.name !== '') lines.push({ ...parsed, line: at + 1, heredocs })
    at = after
  }
  return { lines, escape }
}

/** Only comments of the form `# name=value` at the very top say anything. */
function escapeOf(rows: readonly string[]): string {
  for (const row of rows) {
    const [, name = '', value = ''] = /^\s*#\s*([a-z]+)\s*=\s*(\S+)\s*$/i.exec(row) ?? []
    if (name === '') return '\\'
    if (name.toLowerCase() !== 'escape') continue
    if (value !== '\\' && value !== '`') throw wrong(1, 'only \\ and ` can escape')
    return value
  }
  return '\\'
}

function isNothing(row: string): boolean {
  return /^\s*(?:#.*)?$/.test(row)
}

/** Comments between continued lines are left out, as are empty lines. */
function join(rows: readonly string[], from: number, escape: string): { readonly joined: string; readonly next: number } {
  let joined = ''
  let at = from
  for (; at < rows.length; at += 1) {
    const row = rows[at] ?? ''
    if (at > from && isNothing(row)) continue
    const trimmed = row.trimEnd()
    const isContinued = trimmed.endsWith(escape)
    joined += isContinued ? trimmed.slice(0, -1) : row
    if (!isContinued) return { joined, next: at + 1 }
  }
  return { joined, next: at }
}

interface Reading {
  readonly next: number
  readonly line: number
}

function readHeredocs(joined: string, rows: readonly string[], { next, line }: Reading): { readonly heredocs: HereDocument[]; readonly after: number } {
  const heredocs: HereDocument[] = []
  let after = next
  const name = /^\s*([A-Za-z]+)/.exec(joined)?.[1]?.toUpperCase() ?? ''
  if (!withHeredocs.includes(name)) return { heredocs, after }
  for (const [, dash = '', quote = '', word = ''] of joined.matchAll(/(?<![<\w])<<(-?)(["']?)([A-Za-z_][\w.]*)\2/g)) {
    const end = rows.findIndex((row, at) => at >= after && (dash === '-' ? row.replace(/^\t+/, '') : row) === word)
    if (end === -1) throw wrong(line, `there is no end of what begins with <<${word}`)
    const inner = rows.slice(after, end).map((row) => (dash === '-' ? row.replace(/^\t+/, '') : row))
    heredocs.push({ name: word, text: inner.map((row) => `${row}\n`).join(''), isExpanded: quote === '' })
    after = end + 1
  }
  return { heredocs, after }
}

function parseLine(joined: string, line: number): Omit<DockerLine, 'line' | 'heredocs'> {
  const [, name = '', behind = ''] = /^\s*([A-Za-z]+)(?:\s+([\s\S]*))?$/.exec(joined) ?? []
  if (name === '') throw wrong(line, `'${JSON.stringify(joined.trim().slice(0, 60)).slice(1, -1)}' is no instruction`)
  const flags = new Map<string, string[]>()
  let rest = behind.trim()
  for (let found = flagIn(rest); found; found = flagIn(rest)) {
    const [whole, flag = '', value = ''] = found
    flags.set(flag, [...(flags.get(flag) ?? []), value])
    rest = rest.slice(whole.length)
  }
  return { name: name.toUpperCase(), flags, rest: rest.trim() }
}

function flagIn(rest: string): RegExpExecArray | null {
  return /^--([a-z]+)(?:=(\S*))?(?:\s+|$)/.exec(rest)
}
