import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

export type Files = Readonly<Record<string, string>>

export interface Check {
  readonly script: string
  /** The function of the script that returns the problems of a tree. */
  readonly name: string
}

export async function withTree<Result>(files: Files, use: (tree: string) => Result | Promise<Result>): Promise<Result> {
  const tree = plant(files)
  try {
    return await use(tree)
  } finally {
    rmSync(tree, { recursive: true, force: true })
  }
}

function plant(files: Files): string {
  const tree = mkdtempSync(join(tmpdir(), 'glovebox-check-'))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    writeFileSync(join(tree, path), text)
  }
  return tree
}

/** What a check has to say about a tree that holds exactly these files. */
export function problemsOf(check: Check, files: Files): Promise<readonly string[]> {
  return withTree(files, async (tree) => {
    const script = (await import(pathToFileURL(join(root, check.script)).href)) as Record<
      string,
      (tree: string) => readonly string[] | Promise<readonly string[]>
    >
    const find = script[check.name]
    if (find === undefined) throw new Error(`${check.script} exports no ${check.name}`)
    return await find(tree)
  })
}

/** The same as `npm run ok` sees it. */
export function verdictOf(check: Check, files: Files): { readonly code: number | null; readonly output: string } {
  const tree = plant(files)
  try {
    const { status, stdout, stderr } = spawnSync(process.execPath, [check.script, tree], { cwd: root, encoding: 'utf8' })
    return { code: status, output: stdout + stderr }
  } finally {
    rmSync(tree, { recursive: true, force: true })
  }
}

export function lines(count: number, line = ''): string {
  return `${line}\n`.repeat(count)
}
