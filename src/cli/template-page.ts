import type { TemplateListing } from '../contract/templates.js'
import { type Colors, escapeControls } from './print.js'
import { bytesInWords } from './words.js'

const shortId = 'sha256:'.length + 12
const heads = ['NAME', 'ID', 'SIZE', 'BUILT', 'RECIPE', 'USED BY']
const labelWidth = 10

/** A table, with its head. */
export function templateLines(templates: readonly TemplateListing[]): string {
  const rows = [heads, ...templates.map(cellsOf)]
  const widths = heads.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

function cellsOf({ name, id, bytes, builtAt, recipe, usedBy, damaged }: TemplateListing): string[] {
  const use = usedBy.length === 0 ? '-' : `${usedBy.length} ${usedBy.length === 1 ? 'sandbox' : 'sandboxes'}`
  return [name, id.slice(0, shortId), bytesInWords(bytes), builtAt.slice(0, 16).replace('T', ' '), recipe, damaged === undefined ? use : 'damaged: not used']
}

/** All that is known of one. */
export function templatePage(template: TemplateListing, colors: Colors): string {
  const { name, summary, id, system, arch, python, bytes, entries, builtAt, shell, env, packages, usedBy, damaged, inputs } = template
  const rows: [string, string | undefined][] = [
    ['id', id],
    ['is', summary],
    ['damaged', damaged],
    ['system', `${system}, ${arch}`],
    ['python', python],
    ['size', `${bytesInWords(bytes)} in ${entries} entries`],
    ['built', builtAt],
    ['from', inputs],
    ['shell', shell],
    ...Object.entries(env).map(([key, value]): [string, string] => ['env', `${key}=${value}`]),
    ['used by', usedBy.length === 0 ? undefined : usedBy.join(', ')],
    ['packages', `${packages.length}`],
  ]
  const told = rows.flatMap(([label, text]) => (text === undefined ? [] : [`  ${colors.dim(label.padEnd(labelWidth))}${escapeControls(text)}`]))
  const listed = packages.map((each) => `    ${each.name} ${each.version}`)
  return `${[colors.bold(`template ${name}`), ...told, ...listed].join('\n')}\n`
}
