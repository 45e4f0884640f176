import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'

/** One passage of the warden's source that is there exactly once, and what stands there instead. */
export interface Patch {
  readonly file: string
  readonly passage: string
  readonly instead: string
}

const root = join(import.meta.dirname, '../../..')
const sourceFolder = join(root, 'warden')
const run = promisify(execFile)
const flags = ['-std=gnu11', '-O1', '-Wall', '-Wextra', '-Werror', '-D_GNU_SOURCE', `-I${sourceFolder}`]

/** The path of a warden built from a changed copy of its source. All that is the same in every one is compiled once, beside `place`. */
export async function buildWarden(place: string, { file, passage, instead }: Patch): Promise<string> {
  const warden = join(place, 'warden')
  if (existsSync(warden)) return warden
  const source = readFileSync(join(sourceFolder, file), 'utf8')
  expect(source.split(passage)).toHaveLength(2)
  writeFileSync(
    join(place, file),
    source.replace(passage, () => instead),
  )
  const objects = await compileOnce(join(dirname(place), 'objects'))
  const others = objects.filter((path) => basename(path) !== file.replace(/c$/, 'o'))
  expect(others).toHaveLength(objects.length - 1)
  await run('gcc', [...flags, '-static', '-o', warden, join(place, file), ...others])
  return warden
}

async function compileOnce(folder: string): Promise<string[]> {
  const sources = sourcesOfWarden()
  const objects = sources.map((name) => join(folder, name.replace(/c$/, 'o')))
  if (objects.every((path) => existsSync(path))) return objects
  mkdirSync(folder, { recursive: true })
  await run('gcc', [...flags, '-c', ...sources.map((name) => join(sourceFolder, name))], { cwd: folder })
  return objects
}

/** As the script that builds it says, where `files-*.c` is every file that is named so. */
function sourcesOfWarden(): string[] {
  const script = readFileSync(join(root, 'scripts/build-native.mjs'), 'utf8')
  const list = /warden: \{\s+sources: \[([^\]]+)\]/.exec(script)?.[1] ?? ''
  const names = readdirSync(sourceFolder).filter((name) => name.endsWith('.c'))
  return list.split(',').flatMap((word) => {
    const [, start, rest] = /'([^'*]*)(\*?)\.c'/.exec(word) ?? []
    return start === undefined ? [] : names.filter((name) => (rest === '*' ? name.startsWith(start) : name === `${start}.c`))
  })
}
