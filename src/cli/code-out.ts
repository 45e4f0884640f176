/** --out DIR: the pictures and the files that code made, each under a name of its own. */
import { closeSync, constants, existsSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { draftIn } from '../compose.js'
import type { Artifact, CodeResult } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import type { FileCalls } from '../contract/files.js'
import { numbered, safeName } from './code-names.js'
import { makeFolder } from './make-folder.js'

const binary: Readonly<Record<string, string>> = { 'image/png': 'png', 'image/jpeg': 'jpg', 'application/pdf': 'pdf' }
const textual: Readonly<Record<string, string>> = { 'image/svg+xml': 'svg', 'text/html': 'html' }
const json: readonly (readonly [type: RegExp, extension: string])[] = [
  [/^application\/vnd\.glovebox\.chart\+json$/, 'chart.json'],
  [/^application\/vnd\.glovebox\.table\+json$/, 'table.json'],
  [/^application\/vnd\.plotly\.v\d+\+json$/, 'plotly.json'],
  [/^application\/vnd\.vegalite\.v\d+\+json$/, 'vegalite.json'],
  [/^application\/vnd\.vega\.v\d+\+json$/, 'vega.json'],
]

const mostNumber = 10_000

export class OutFolder {
  readonly #folder: string
  readonly #mayReplace: boolean
  /** Of this run: also where files may be replaced, none of its own is. */
  readonly #used = new Set<string>()
  #results = 0

  /** Makes the folder. What is no folder is refused before anything runs. */
  constructor(folder: string, { force }: { readonly force: boolean }) {
    if (folder === '') throw new SandboxError('invalid', '--out: must not be empty', { hint: 'glovebox code --out results …' })
    this.#folder = resolve(folder)
    this.#mayReplace = force
    const problem = (why: string, cause?: unknown): SandboxError =>
      new SandboxError('invalid', `--out: ${this.#folder} ${why}`, { hint: 'glovebox code --out results …', cause })
    if (existsSync(this.#folder) && !statSync(this.#folder).isDirectory()) throw problem('is there already and is no folder')
    try {
      makeFolder(this.#folder)
    } catch (error) {
      throw problem(`cannot be made: ${(error as NodeJS.ErrnoException).code ?? String(error)}`, error)
    }
  }

  /** Every form of a result that is more than text; the paths of what was written. */
  addResult({ data }: CodeResult): string[] {
    const forms = Object.entries(data).flatMap(([type, value]) => formOf(type, value))
    if (forms.length === 0) return []
    this.#results += 1
    return forms.map(({ extension, bytes }) => this.#place(`result-${this.#results}.${extension}`, (descriptor) => writeAll(descriptor, bytes)))
  }

  /** A file of the sandbox; the path of the copy. */
  async addArtifact({ path }: Pick<Artifact, 'path'>, files: FileCalls, signal: AbortSignal): Promise<string> {
    const { bytes } = await files.read(path, { signal })
    const draft = draftIn(this.#folder)
    const descriptor = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o666)
    try {
      for await (const chunk of bytes) writeAll(descriptor, chunk)
      return this.#settle(safeName(path.replace(/^\/workspace\//, '')), draft)
    } finally {
      closeSync(descriptor)
      rmSync(draft, { force: true })
    }
  }

  #place(name: string, write: (descriptor: number) => void): string {
    const draft = draftIn(this.#folder)
    const descriptor = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o666)
    try {
      write(descriptor)
      return this.#settle(name, draft)
    } finally {
      closeSync(descriptor)
      rmSync(draft, { force: true })
    }
  }

  /** Renaming follows no link. The name is taken first, so that nobody's file is replaced, unless that was asked for. */
  #settle(name: string, draft: string): string {
    const target = this.#mayReplace ? this.#unused(name) : this.#free(name)
    renameSync(draft, target)
    return target
  }

  #unused(name: string): string {
    let number = 1
    while (this.#used.has(numbered(name, number))) number += 1
    this.#used.add(numbered(name, number))
    return join(this.#folder, numbered(name, number))
  }

  #free(name: string): string {
    for (let number = 1; number <= mostNumber; number += 1) {
      const target = join(this.#folder, numbered(name, number))
      try {
        closeSync(openSync(target, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600))
        return target
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
    }
    throw new SandboxError('conflict', `--out: ${join(this.#folder, name)} and ${mostNumber} more of its kind are there already`, {
      hint: 'glovebox code --out another-folder …',
    })
  }
}

interface Form {
  readonly extension: string
  readonly bytes: Uint8Array
}

function formOf(type: string, value: unknown): Form[] {
  const bytesExtension = binary[type]
  if (bytesExtension !== undefined && typeof value === 'string') return [{ extension: bytesExtension, bytes: Buffer.from(value, 'base64') }]
  const textExtension = textual[type]
  if (textExtension !== undefined && typeof value === 'string') return [{ extension: textExtension, bytes: Buffer.from(value) }]
  const found = json.find(([pattern]) => pattern.test(type))
  return found ? [{ extension: found[1], bytes: Buffer.from(`${JSON.stringify(value, undefined, 2)}\n`) }] : []
}

function writeAll(descriptor: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at)
}
