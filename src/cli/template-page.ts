import type { TemplateImage, TemplateLanguage, TemplateListing } from '../contract/templates.js'
import { type Colors, escapeControls } from './print.js'
import { bytesInWords } from './words.js'

const shortId = 'sha256:'.length + 12
const heads = ['NAME', 'ID', 'SIZE', 'BUILT', 'RECIPE', 'LANGUAGES', 'USED BY']
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

function cellsOf({ name, id, bytes, builtAt, recipe, languages, usedBy, damaged }: TemplateListing): string[] {
  const use = usedBy.length === 0 ? '-' : `${usedBy.length} ${usedBy.length === 1 ? 'sandbox' : 'sandboxes'}`
  const when = builtAt.slice(0, 16).replace('T', ' ')
  const spoken = languages?.map((language) => language.name).join(',') || '-'
  return [name, id.slice(0, shortId), bytesInWords(bytes), when, recipe, spoken, damaged === undefined ? use : 'damaged: not used']
}

/** All that is known of one. */
export function templatePage(template: TemplateListing, colors: Colors): string {
  const { name, summary, id, system, arch, python, bytes, entries, builtAt, shell, env, packages, usedBy, damaged, inputs, languages, image } = template
  const rows: [string, string | undefined][] = [
    ['id', id],
    ['is', summary],
    ['damaged', damaged],
    ['system', `${system}, ${arch}`],
    ['python', languages === undefined ? python : undefined],
    ['languages', languages?.map(inWords).join(', ') || undefined],
    ['size', `${bytesInWords(bytes)} in ${entries} entries`],
    ['built', builtAt],
    ['from', inputs],
    ['shell', shell],
    ...Object.entries(env).map(([key, value]): [string, string] => ['env', `${key}=${value}`]),
    ...(image ? imageRows(image) : []),
    ['used by', usedBy.length === 0 ? undefined : usedBy.join(', ')],
    ['packages', image ? undefined : `${packages.length}`],
  ]
  const told = rows.flatMap(([label, text]) => (text === undefined ? [] : [`  ${colors.dim(label.padEnd(labelWidth))}${escapeControls(text)}`]))
  const listed = packages.map((each) => `    ${each.name} ${each.version}`)
  return `${[colors.bold(`template ${name}`), ...told, ...listed].join('\n')}\n`
}

function inWords({ name, version }: TemplateLanguage): string {
  return version === undefined ? name : `${name} ${version}`
}

/** What an image says of itself, and what of it is not here. */
function imageRows({ source, digest, user, workdir, entrypoint, cmd, labels, leftOut, leftOutCount }: TemplateImage): [string, string | undefined][] {
  const command = [...entrypoint, ...cmd]
  const more = leftOutCount - leftOut.length
  return [
    ['image', source],
    ['digest', digest],
    ['user', user === '' ? undefined : `${user}, who is 'user' in a sandbox`],
    ['workdir', workdir === '' ? undefined : workdir],
    ['command', command.length === 0 ? undefined : JSON.stringify(command)],
    ...Object.entries(labels).map(([key, value]): [string, string] => ['label', `${key}=${value}`]),
    ...leftOut.map(({ path, why }): [string, string] => ['not as was', `${path} ${why}`]),
    ['', more > 0 ? `and ${more} more` : undefined],
  ]
}
