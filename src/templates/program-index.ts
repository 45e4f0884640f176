/**
 * Where the programs of a template are. A walk looks into every file but those whose names say that they are data, which no loader is asked to start, whether
 * or not a file has an execute bit: a loader does not ask for one. The index stays true as long as every folder of it is as it was.
 */
import { lstatSync, readdirSync, type Dirent } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { readProgramFile } from '../sys/program-file.js'
import type { TemplateView } from './template-view.js'

export interface ProgramIndex {
  /** Every folder, by the cell's path, with what tells that nothing was put there or taken away since. */
  readonly folders: readonly (readonly [path: string, facts: FolderFacts])[]
  /** Every ELF program, by the cell's path. */
  readonly programs: readonly string[]
  /** What could not be looked into. Nobody is given it to read. */
  readonly closed: readonly string[]
  /** What is in the folders that hold, at any depth, a program or something closed. */
  readonly inside: Readonly<Record<string, FolderContent>>
}

/** Device, inode, mode, and the times of the last change of content and of anything. */
type FolderFacts = readonly number[]

export interface FolderContent {
  readonly files: readonly string[]
  readonly folders: readonly string[]
}

/** Text, bytecode, pictures, archives: an ELF program under such a name would be taken for data. */
const dataName =
  /\.(?:a|bc|c|cc|cfg|cmake|conf|cpp|css|csv|cuh|def|dtd|enc|exe|gif|go|gz|h|hpp|html|in|inl|jar|jmod|jpg|js|json|lang|lua|m4|mo|mod|msg|md|pc|ph|php|pl|pm|png|po|pod|pom|properties|py|pyc|pyi|rb|rs|rst|scm|service|sql|svg|tcl|tmac|ts|ttf|txt|typed|vim|xml|xz|yaml|yml)$/

/** So that the walk never keeps the rest of the process waiting for long. */
const stepsBetweenPauses = 200

export async function buildProgramIndex(view: TemplateView): Promise<ProgramIndex> {
  const walk = new Walk(view)
  for (const top of view.tops) walk.waiting.push(top)
  for (let steps = 1; walk.waiting.length > 0; steps += 1) {
    walk.step(walk.waiting.pop() as string)
    if (steps % stepsBetweenPauses === 0) await setImmediate()
  }
  return walk.index()
}

/** True when every folder is as the index has it. */
export async function isCurrent(index: ProgramIndex, view: TemplateView): Promise<boolean> {
  for (const [count, [path, facts]] of index.folders.entries()) {
    const source = view.sourceOf(path)
    const now = source === undefined ? undefined : folderFacts(source)
    if (now === undefined || !now.every((fact, index) => fact === facts[index])) return false
    if (count % (10 * stepsBetweenPauses) === 0) await setImmediate()
  }
  return true
}

class Walk {
  readonly waiting: string[] = []
  readonly #view: TemplateView
  readonly #folders: [string, FolderFacts][] = []
  readonly #programs: string[] = []
  readonly #closed: string[] = []
  readonly #inside = new Map<string, FolderContent>()

  constructor(view: TemplateView) {
    this.#view = view
  }

  step(path: string): void {
    const source = this.#view.sourceOf(path)
    const facts = source === undefined ? undefined : folderFacts(source)
    if (source === undefined || facts === undefined) return
    this.#folders.push([path, facts])
    const entries = listing(source)
    if (entries === undefined) return void this.#closed.push(path)
    const files = entries.filter((entry) => entry.isFile()).map(({ name }) => name)
    const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
    this.#inside.set(path, { files, folders })
    for (const name of files) if (!dataName.test(name)) this.#look(`${path}/${name}`, `${source}/${name}`)
    this.waiting.push(...folders.map((name) => `${path}/${name}`))
  }

  index(): ProgramIndex {
    const split = foldersAbove([...this.#programs, ...this.#closed])
    return {
      folders: this.#folders,
      programs: this.#programs.sort(),
      closed: this.#closed.sort(),
      inside: Object.fromEntries([...this.#inside].filter(([path]) => split.has(path))),
    }
  }

  #look(path: string, source: string): void {
    try {
      if (readProgramFile(source).kind === 'program') this.#programs.push(path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#closed.push(path)
    }
  }
}

/** Every folder that holds one of the paths at some depth. */
export function foldersAbove(paths: readonly string[]): Set<string> {
  const above = new Set<string>()
  for (const path of paths) {
    for (let end = path.lastIndexOf('/'); end > 0 && !above.has(path.slice(0, end)); end = path.lastIndexOf('/', end - 1)) above.add(path.slice(0, end))
  }
  return above
}

function listing(folder: string): Dirent[] | undefined {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return undefined
  }
}

/** Undefined when it is no folder any more. Numbers tell a quarter of a microsecond; larger ones would cost as much again. */
function folderFacts(folder: string): FolderFacts | undefined {
  try {
    const status = lstatSync(folder)
    return status.isDirectory() ? [status.dev, status.ino, status.mode, status.mtimeMs, status.ctimeMs] : undefined
  } catch {
    return undefined
  }
}
