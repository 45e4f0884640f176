/** From an image that can be read to a template that is kept: nothing of it has a name before all of it is there, was compared with its digests, and opened a cell. */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { arch } from 'node:os'
import { join } from 'node:path'
import { SandboxError } from '../../contract/errors.js'
import type { BuildEvent, BuildResult, TemplateImage, TemplateInfo } from '../../contract/templates.js'
import { syncTree } from '../../sys/sync-tree.js'
import { removeTree } from '../../sys/tree-removal.js'
import { machineError } from '../build.js'
import { rootOf } from '../built-root.js'
import { readTree, writeManifest } from '../manifest.js'
import { recordFile, recordText } from '../record.js'
import { damageOf, seal, type TemplateStore } from '../store.js'
import { TemplateView } from '../template-view.js'
import type { Workshop } from '../workshop.js'
import type { ImageConfig } from './image-config.js'
import { settleRoot } from './image-root.js'
import { ImageTree, refused } from './image-tree.js'
import { findLanguages } from './languages.js'
import { readBase } from './base-tree.js'
import { type ImageLimits, LayerReader } from './layers.js'
import { materialise } from './materialise.js'

/** Raised when the same image makes something else. */
const edition = '1'

export interface ReadableLayer {
  /** Compressed or not. */
  readonly bytes: () => AsyncIterable<Uint8Array>
  /** What its SHA-256 must be as it is unpacked; undefined where nobody says. */
  readonly diffId: string | undefined
}

export interface ReadableImage {
  readonly kind: 'pull' | 'import' | 'Dockerfile'
  /** As it was asked for. */
  readonly source: string
  readonly summary: string
  readonly digest: string
  readonly config: ImageConfig
  /** The root of a template that is here, which all layers lie over. */
  readonly base?: string
  /** The lowest first. */
  readonly layers: readonly ReadableLayer[]
}

export interface KeepOptions {
  readonly name: string
  readonly store: TemplateStore
  readonly workshop: Workshop
  readonly limits?: ImageLimits | undefined
  readonly again?: boolean | undefined
  readonly signal?: AbortSignal | undefined
  readonly tell: (event: BuildEvent) => void
}

/** Whoever calls holds the store's lock. */
export async function keepImage(image: ReadableImage, options: KeepOptions): Promise<BuildResult> {
  const began = Date.now()
  const inputs = `sha256:${createHash('sha256')
    .update(JSON.stringify([edition, image.digest, image.config, arch()]))
    .digest('hex')}`
  const known = options.again === true ? undefined : wholeTemplate(options, inputs)
  const info = known ?? (await keepNew(image, { ...options, inputs }))
  return { ...info, wasThere: known !== undefined, tookMs: Date.now() - began }
}

function wholeTemplate({ store, name }: KeepOptions, inputs: string): TemplateInfo | undefined {
  try {
    const stored = store.find(name)
    return stored?.info.inputs === inputs && damageOf(stored.object) === undefined ? stored.info : undefined
  } catch {
    return undefined
  }
}

type Keeping = KeepOptions & { readonly inputs: string }

async function keepNew(image: ReadableImage, keeping: Keeping): Promise<TemplateInfo> {
  const { store, signal, tell, name } = keeping
  const draft = store.newDraft()
  try {
    const info = await describe(await unpack(image, draft, keeping), image, { ...keeping, draft })
    tell({ type: 'phase', phase: 'keeping' })
    await writeFile(join(draft, recordFile), recordText(info), { mode: 0o600 })
    await chmod(draft, 0o700)
    await syncTree(draft)
    await seal(draft)
    await store.publish(name, draft, info)
    return info
  } catch (error) {
    throw error instanceof SandboxError || signal?.aborted === true ? error : machineError(draft, error)
  } finally {
    await removeTree(draft)
  }
}

type Unpacked = Pick<TemplateInfo, 'shell'> & { readonly image: TemplateImage }

/** All layers into one tree, then the tree into files. */
async function unpack(image: ReadableImage, draft: string, { signal, tell, limits }: Keeping): Promise<Unpacked> {
  const folder = join(draft, 'contents')
  mkdirSync(folder, { mode: 0o700 })
  const tree = new ImageTree()
  let bytes = 0
  const onBytes = (count: number): void => {
    bytes += count
    tell({ type: 'progress', phase: 'reading', fraction: Number.NaN, detail: `${(bytes / 1e6).toFixed(0)} MB` })
  }
  const reader = new LayerReader({ tree, folder, signal, onBytes, ...(limits && { limits }) })
  tell({ type: 'phase', phase: 'reading', detail: `${image.layers.length} ${image.layers.length === 1 ? 'layer' : 'layers'}` })
  if (image.base !== undefined) readBase(tree, image.base)
  for (const [index, { bytes: read, diffId }] of image.layers.entries()) {
    const found = await reader.add(read())
    if (diffId !== undefined && diffId !== found) throw refused(`layer ${index + 1} is ${found}, and its config says ${diffId}`)
  }
  const { shell, hasFolder } = settleRoot(tree, reader)
  tell({ type: 'phase', phase: 'unpacking', detail: `${tree.entries} entries` })
  await materialise(tree, { root: join(draft, 'root'), signal })
  rmSync(folder, { recursive: true })
  const { config, source, digest } = image
  const workdir = config.workdir === '' || hasFolder(config.workdir) ? config.workdir : ''
  if (workdir !== config.workdir) reader.tell(config.workdir, 'is its working folder, and a sandbox has no such folder')
  const { told, count } = reader.leftOut
  const { user, entrypoint, cmd, labels } = config
  return { shell, image: { source, digest, user, workdir, entrypoint, cmd, labels, leftOut: told, leftOutCount: count } }
}

async function describe({ shell, image }: Unpacked, from: ReadableImage, keeping: Keeping & { readonly draft: string }): Promise<TemplateInfo> {
  const { name, draft, inputs, workshop, signal, tell } = keeping
  const root = join(draft, 'root')
  const { env } = from.config
  tell({ type: 'phase', phase: 'hashing' })
  const lines = await readTree(root, { signal })
  const manifest = writeManifest(lines, { shell, env, image })
  await writeFile(join(draft, 'manifest'), manifest.text, { mode: 0o600 })
  tell({ type: 'phase', phase: 'checking' })
  const shownRoot = rootOf({ name, root, shell, env })
  const languages = await findLanguages({ ...shownRoot, ...(image.workdir !== '' && { workdir: image.workdir }) }, { workshop, signal })
  const { id, bytes, entries } = manifest
  const python = languages.find((language) => language.name === 'python')?.version
  const about = { recipe: from.kind, summary: from.summary, builtAt: new Date().toISOString(), system: systemOf(new TemplateView(shownRoot)), arch: arch() }
  return { name, id, ...about, bytes, entries, shell, env, languages, image, packages: [], inputs, ...(python !== undefined && { python }) }
}

/** By no link that leads out of the template. */
function systemOf(view: TemplateView): string {
  const file = view.find('/usr/lib/os-release') ?? view.find('/etc/os-release')
  if (file === undefined || !file.status.isFile() || statSync(file.source).size > 64 * 1024) return 'unknown'
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is left out
  return /^PRETTY_NAME="?([^"\n]{1,200})"?$/m.exec(readFileSync(file.source, 'utf8'))?.[1]?.replace(/[\u0000-\u001f]/g, '') ?? 'unknown'
}
