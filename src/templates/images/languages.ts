/** Which languages a template has programs for, told by those programs in a cell. */
import type { TemplateRoot } from '../../contract/driver.js'
import type { TemplateLanguage } from '../../contract/templates.js'
import { TemplateView } from '../template-view.js'
import { openBench, type Workshop } from '../workshop.js'

interface Known {
  readonly name: string
  readonly programs: readonly string[]
  readonly asks: string
}

const known: readonly Known[] = [
  { name: 'python', programs: ['python3', 'python'], asks: '--version' },
  { name: 'javascript', programs: ['node', 'nodejs', 'bun', 'deno'], asks: '--version' },
  { name: 'shell', programs: ['bash', 'sh'], asks: '--version' },
  { name: 'ruby', programs: ['ruby'], asks: '--version' },
  { name: 'perl', programs: ['perl'], asks: '--version' },
  { name: 'php', programs: ['php'], asks: '--version' },
  { name: 'go', programs: ['go'], asks: 'version' },
  { name: 'java', programs: ['java'], asks: '--version' },
  { name: 'rust', programs: ['rustc'], asks: '--version' },
  { name: 'c', programs: ['gcc', 'clang', 'cc'], asks: '--version' },
  { name: 'r', programs: ['Rscript'], asks: '--version' },
  { name: 'lua', programs: ['lua', 'lua5.4', 'lua5.3'], asks: '-v' },
]

const mostWords = 64 * 1024
const usualPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export interface LookOptions {
  readonly workshop: Workshop
  readonly signal?: AbortSignal | undefined
}

/** Also a proof that a sandbox with this root can be made at all. */
export async function findLanguages(root: TemplateRoot, { workshop, signal }: LookOptions): Promise<TemplateLanguage[]> {
  const found = programsIn(root)
  await using bench = await openBench(workshop, root, { signal, time: '20s' })
  const languages: TemplateLanguage[] = []
  for (const { name, path, asks } of found) {
    let said = ''
    const { failure } = await bench.run([path, asks], (bytes) => {
      if (said.length < mostWords) said += Buffer.from(bytes).toString('latin1')
    })
    const version = failure === undefined ? versionIn(said) : undefined
    languages.push({ name, ...(version !== undefined && { version }) })
  }
  return languages
}

function programsIn(root: TemplateRoot): (Omit<Known, 'programs'> & { readonly path: string })[] {
  const view = new TemplateView(root)
  const folders = (root.env.PATH ?? usualPath).split(':').filter((folder) => folder.startsWith('/'))
  return known.flatMap(({ name, programs, asks }) => {
    const paths = programs.flatMap((program) => folders.map((folder) => `${folder}/${program}`))
    const path = paths.find((each) => {
      const status = view.find(each)?.status
      return status?.isFile() === true && (status.mode & 0o111) !== 0
    })
    return path === undefined ? [] : [{ name, path, asks }]
  })
}

/** The first number with dots in what a program says of itself. */
function versionIn(said: string): string | undefined {
  return /\d+\.\d+(?:\.\d+)*/.exec(said.slice(0, 500))?.[0]
}
