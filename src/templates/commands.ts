/** From the names of commands to what a cell may execute and read, so that nothing else in its template can be started. */
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import type { CommandRules, TemplateRoot } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import { readProgramFile } from '../sys/program-file.js'
import { cachePlace } from '../sys/places.js'
import { foldersAbove, type ProgramIndex } from './program-index.js'
import { createProgramIndexes } from './program-index-cache.js'
import { TemplateView, type ViewedFile } from './template-view.js'

export interface CommandResolverOptions {
  /** Where indexes are kept, instead of the usual place. */
  readonly cache?: string
}

export type CommandResolver = (names: readonly string[], root: TemplateRoot) => Promise<CommandRules>

const anyExecute = 0o111
/** The kernel follows no more interpreters of interpreters than that. */
const mostInterpreters = 5
/** What is tried to see that it is refused: harmless where it is not. */
const harmless = ['true', 'false', 'pwd', 'sleep']

/** Throws SandboxError('invalid') that names the entry, such as `commands[1]`, for what cannot be executed in the template. */
export function createCommandResolver(options: CommandResolverOptions = {}): CommandResolver {
  const indexes = createProgramIndexes(() => options.cache ?? join(cachePlace(), 'templates'))
  return async (names, root) => {
    const view = new TemplateView(root)
    const executable = new Map<string, ViewedFile>()
    for (const [position, name] of names.entries()) grant({ view, path: root.env.PATH ?? '', field: `commands[${position}]`, executable }, name)
    const index = await indexes.of(view)
    for (const copy of copiesOf([...executable.values()], index, view)) executable.set(copy.path, copy)
    const hidden = hiddenOf(index, view, [...executable.values()])
    return { executable: [...executable.keys()], readable: readableOf(index, view, hidden), unlisted: unlistedOf(hidden, view, root) }
  }
}

interface Grant {
  readonly view: TemplateView
  readonly path: string
  readonly field: string
  /** By the cell's path; grows. */
  readonly executable: Map<string, ViewedFile>
}

/** The program that a name means, and all that the kernel starts with it. */
function grant(context: Grant, name: string): void {
  const { field } = context
  if (name.includes('/') && !name.startsWith('/')) throw invalid(field, `'${shown(name)}' must be a name, or an absolute path as the cell sees it`)
  const file = name.startsWith('/') ? context.view.find(name) : search(context, name)
  if (file === undefined)
    throw invalid(field, name.startsWith('/') ? `there is no ${shown(name)} in the template` : `there is no '${shown(name)}' in ${context.path}`)
  grantFile(context, file, mostInterpreters)
}

function grantFile(context: Grant, file: ViewedFile, depth: number): void {
  const { field, executable } = context
  if (file.status.isDirectory()) throw invalid(field, `${file.path} is a folder`)
  if (!isExecutable(file)) throw invalid(field, `${file.path} is not executable`)
  if (executable.has(file.path)) return
  if (depth === 0) throw invalid(field, `${file.path} is the interpreter of too many interpreters`)
  const found = look(file, field)
  if (found.kind === 'other') throw invalid(field, `${file.path} is neither a program nor a script with #!`)
  executable.set(file.path, file)
  if (found.interpreter === undefined) return
  const interpreter = found.interpreter.startsWith('/') ? context.view.find(found.interpreter) : undefined
  if (interpreter === undefined) throw invalid(field, `${file.path} needs ${shown(found.interpreter)}, which the template does not have`)
  // A loader is a library by its tables, and needs no interpreter of its own.
  if (found.kind === 'program') return void executable.set(interpreter.path, interpreter)
  grantFile(context, interpreter, depth - 1)
  const called = interpreter.path.endsWith('/env') ? calledByEnv(found.argument) : undefined
  const program = called === undefined ? undefined : search(context, called)
  if (called !== undefined && program === undefined) throw invalid(field, `${file.path} needs '${shown(called)}', which the template does not have`)
  if (program !== undefined) grantFile(context, program, depth - 1)
}

/** `#!/usr/bin/env -S NAME=value python3 -u` calls python3. */
function calledByEnv(argument: string): string | undefined {
  return argument.split(/[ \t]+/).find((word) => word !== '' && !word.startsWith('-') && !word.includes('='))
}

function look(file: ViewedFile, field: string): ReturnType<typeof readProgramFile> {
  try {
    return readProgramFile(file.source)
  } catch (error) {
    throw invalid(field, `${file.path} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`)
  }
}

/** As a shell would: the first that can be executed, or else the first there is. */
function search({ view, path }: Pick<Grant, 'view' | 'path'>, name: string): ViewedFile | undefined {
  if (name.includes('/')) return name.startsWith('/') ? view.find(name) : undefined
  const found = path.split(':').flatMap((folder) => view.find(`${folder}/${name}`) ?? [])
  return found.find(isExecutable) ?? found[0]
}

function isExecutable({ status }: ViewedFile): boolean {
  return status.isFile() && (status.mode & anyExecute) !== 0
}

/** Byte for byte the same program under the same name elsewhere: git starts itself from a folder of its own. */
function copiesOf(listed: readonly ViewedFile[], index: ProgramIndex, view: TemplateView): ViewedFile[] {
  return listed.flatMap((file) => {
    const named = index.programs.filter((path) => path !== file.path && posix.basename(path) === posix.basename(file.path))
    return named.flatMap((path) => view.fileAt(path) ?? []).filter((other) => isExecutable(other) && isSame(file, other))
  })
}

function isSame(one: ViewedFile, other: ViewedFile): boolean {
  if (identityOf(one) === identityOf(other)) return true
  return one.status.size === other.status.size && readFileSync(one.source).equals(readFileSync(other.source))
}

/** Programs that are not listed. One file with two names is one program: the kernel's rules speak of files. */
function hiddenOf(index: ProgramIndex, view: TemplateView, listed: readonly ViewedFile[]): string[] {
  const paths = new Set(listed.map((file) => file.path))
  const twins = new Set(listed.filter(({ status }) => status.nlink > 1).map(identityOf))
  const isTwin = (path: string): boolean => {
    const file = twins.size === 0 ? undefined : view.fileAt(path)
    return file !== undefined && twins.has(identityOf(file))
  }
  return index.programs.filter((path) => !paths.has(path) && !isTwin(path))
}

function identityOf({ status }: ViewedFile): string {
  return `${status.dev} ${status.ino}`
}

/** The fewest files and folders that together are everything but what is hidden. */
function readableOf(index: ProgramIndex, view: TemplateView, hidden: readonly string[]): string[] {
  const withheld = new Set([...hidden, ...index.closed])
  const split = foldersAbove([...withheld])
  const isWhole = (path: string): boolean => !withheld.has(path) && !split.has(path)
  const readable = view.tops.filter(isWhole)
  for (const folder of split) {
    const { files, folders } = index.inside[folder] ?? { files: [], folders: [] }
    readable.push(...[...files, ...folders].map((name) => `${folder}/${name}`).filter(isWhole))
  }
  return readable.sort()
}

function unlistedOf(hidden: readonly string[], view: TemplateView, root: TemplateRoot): string | undefined {
  const known = harmless.flatMap((name) => search({ view, path: root.env.PATH ?? '' }, name)?.path ?? [])
  return known.find((path) => hidden.includes(path)) ?? hidden.find((path) => isOpenToAll(view.fileAt(path)))
}

function isOpenToAll(file: ViewedFile | undefined): boolean {
  return file !== undefined && (file.status.mode & anyExecute) === anyExecute
}

function invalid(field: string, message: string): SandboxError {
  return new SandboxError('invalid', `${field}: ${message}`)
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 200)).slice(1, -1)
}
