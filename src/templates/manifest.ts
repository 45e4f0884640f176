/**
 * Every entry of a template, one line each, sorted by path; before them what its programs start with. The SHA-256 of it all is the template's id, so that equal
 * content has one name wherever and whenever it was built: owners and times are not in it, and modes are only what can be executed and what not.
 */
import { createHash } from 'node:crypto'
import { chmodSync, closeSync, lstatSync, openSync, readdirSync, readlinkSync, readSync, type Stats } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import * as z from 'zod'
import { deferred } from '../contract/deferred.js'
import { SandboxError } from '../contract/errors.js'
import type { TemplateDifference, TemplateImage } from '../contract/templates.js'

/** Type; mode, in octal; size; the content's SHA-256, or a link's target; path. */
const lineSchema = deferred(() => z.tuple([z.enum(['file', 'folder', 'link']), z.string(), z.int().min(0), z.string(), z.string()]))
export type TreeLine = z.output<typeof lineSchema>

export interface TreeDefaults {
  readonly shell: string
  readonly env: Readonly<Record<string, string>>
  /** Of one that was made from an image: which, and what that says of its programs. */
  readonly image?: Pick<TemplateImage, 'digest' | 'user' | 'workdir' | 'entrypoint' | 'cmd'>
}

export interface Manifest {
  readonly text: string
  readonly id: string
  readonly bytes: number
  readonly entries: number
}

export interface WalkOptions {
  readonly signal?: AbortSignal | undefined
  readonly onEntry?: ((count: number) => void) | undefined
}

const entriesAtOnce = 100
const readableMode = 0o644
const executableMode = 0o755
const anyExecute = 0o111
const modeBits = 0o7777

export function writeManifest(lines: readonly TreeLine[], defaults: TreeDefaults): Manifest {
  const text = `${[headOf(defaults), ...lines.map((line) => JSON.stringify(line))].join('\n')}\n`
  const bytes = lines.reduce((sum, [type, , size]) => sum + (type === 'file' ? size : 0), 0)
  return { text, id: manifestId(text), bytes, entries: lines.length }
}

function headOf({ shell, env, image }: TreeDefaults): string {
  const said = image && { digest: image.digest, user: image.user, workdir: image.workdir, entrypoint: image.entrypoint, cmd: image.cmd }
  return JSON.stringify({ schema: 'glovebox-template/1', shell, env: Object.fromEntries(Object.entries(env).sort()), ...(said && { image: said }) })
}

export function manifestId(text: string | Uint8Array): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}

/** Whether a manifest says the same of what programs start with. */
export function hasDefaults(text: string, defaults: TreeDefaults): boolean {
  return text.slice(0, text.indexOf('\n')) === headOf(defaults)
}

/** Throws for what is no manifest. */
function parseManifest(text: string): TreeLine[] {
  return text
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => lineSchema.parse(JSON.parse(line)))
}

/** Makes every mode what a template has. Only of a draft. */
export async function settleModes(root: string, options: WalkOptions = {}): Promise<void> {
  await walk(root, options, (path, status) => {
    const wanted = status.isDirectory() || (status.mode & anyExecute) !== 0 ? executableMode : readableMode
    if (!status.isSymbolicLink() && (status.mode & modeBits) !== wanted) chmodSync(`${root}/${path}`, wanted)
  })
  chmodSync(root, executableMode)
}

/** Sorted by path. */
export async function readTree(root: string, options: WalkOptions = {}): Promise<TreeLine[]> {
  const lines: TreeLine[] = []
  await walk(root, options, (path, status) => void lines.push(lineOf(root, path, status)))
  return lines.sort(([, , , , one], [, , , , other]) => (one < other ? -1 : 1))
}

/** What is not as the manifest says, sorted by path; nothing when all is. */
export async function compareTree(root: string, text: string, options: WalkOptions = {}): Promise<TemplateDifference[]> {
  const expected = new Map(parseManifest(text).map((line) => [line[4], line]))
  const owner = lstatSync(root).uid
  const differences: TemplateDifference[] = []
  await walk(root, options, (path, status) => {
    const line = expected.get(path)
    expected.delete(path)
    const what = line === undefined ? 'was added' : (foreign(status, owner) ?? difference(line, lineOf(root, path, status)))
    if (what !== undefined) differences.push({ path, what })
  })
  for (const path of expected.keys()) differences.push({ path, what: 'is missing' })
  return differences.sort((one, other) => (one.path < other.path ? -1 : 1))
}

function foreign(status: Stats, owner: number): string | undefined {
  return status.uid === owner ? undefined : `belongs to uid ${status.uid}`
}

function difference(was: TreeLine, is: TreeLine): string | undefined {
  if (was[0] !== is[0]) return `is a ${is[0]}, not a ${was[0]}`
  if (was[3] !== is[3] || was[2] !== is[2]) return was[0] === 'link' ? `leads to ${is[3]}, not to ${was[3]}` : 'has other content'
  return was[1] === is[1] ? undefined : `has mode ${is[1]}, not ${was[1]}`
}

function lineOf(root: string, path: string, status: Stats): TreeLine {
  const source = `${root}/${path}`
  const mode = (status.mode & modeBits).toString(8).padStart(4, '0')
  if (status.isDirectory()) return ['folder', mode, 0, '', path]
  if (status.isSymbolicLink()) return ['link', '0777', 0, readlinkSync(source), path]
  if (status.isFile()) return ['file', mode, status.size, hashFile(source), path]
  throw new SandboxError('broken', `${source} is neither a file, nor a folder, nor a link`)
}

const piece = 2 ** 20

function hashFile(path: string): string {
  const hash = createHash('sha256')
  const file = openSync(path, 'r')
  try {
    const buffer = Buffer.allocUnsafe(piece)
    for (let count = readSync(file, buffer); count > 0; count = readSync(file, buffer)) hash.update(buffer.subarray(0, count))
    return hash.digest('hex')
  } finally {
    closeSync(file)
  }
}

/** Synchronous calls, since there are very many very small ones, with pauses for other work between them. A folder comes before what is in it. */
async function walk(root: string, { signal, onEntry }: WalkOptions, visit: (path: string, status: Stats) => void): Promise<void> {
  const waiting = ['']
  let count = 0
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const name of readdirSync(`${root}/${folder}`)) {
      const path = folder === '' ? name : `${folder}/${name}`
      const status = lstatSync(`${root}/${path}`)
      visit(path, status)
      if (status.isDirectory()) waiting.push(path)
      count += 1
      if (count % entriesAtOnce !== 0) continue
      onEntry?.(count)
      await setImmediate()
      signal?.throwIfAborted()
    }
  }
}
