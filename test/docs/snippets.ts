import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Snippet {
  /** Where it stands, as page:line. */
  readonly place: string
  readonly language: string
  readonly code: string
  /** What the page says it prints, if a block without a language follows it directly. */
  readonly shown: string | undefined
}

const fence = /^```(.*)\n([\s\S]*?)^```\n(?:\n```(?:text)?\n([\s\S]*?)^```\n)?/gm

/** The blocks of a page that are marked: ```js runnable, ```sh runnable; `served` are those that need a server, its address and a key. */
export function markedSnippets(root: string, page: string, mark: 'runnable' | 'served'): readonly Snippet[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(fence)].flatMap(({ 1: info = '', 2: code = '', 3: shown, index }) => {
    const [language = '', ...marks] = info.split(' ')
    if (!marks.includes(mark)) return []
    return [{ place: `${page}:${text.slice(0, index).split('\n').length}`, language, code, shown }]
  })
}

export function pagesOf(root: string): readonly string[] {
  const own = readdirSync(root).filter((name) => name.endsWith('.md'))
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
  return [...own, ...docs.map((name) => join('docs', name))]
}

/** Whether what was printed is what the page shows, where … stands for anything. */
export function matchesShown(printed: string, shown: string): boolean {
  const pattern = shown
    .trim()
    .split('…')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('[\\s\\S]*?')
  return new RegExp(`^${pattern}$`).test(printed.trim())
}
