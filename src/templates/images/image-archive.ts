/** An archive on this machine: what `docker save` writes, an OCI layout, or a plain root; compressed or not. Which of them is told by what is in it. */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, statSync } from 'node:fs'
import { basename, posix } from 'node:path'
import { pipeline } from 'node:stream/promises'
import * as z from 'zod'
import { deferred } from '../../contract/deferred.js'
import { SandboxError } from '../../contract/errors.js'
import { compressionOf, decompress } from '../../sys/decompress.js'
import { readTar } from '../../sys/tar-reader.js'
import { printed } from './entry-path.js'
import { emptyConfig, parseConfig, parseJson } from './image-config.js'
import { type BlobSource, digestOf, mostDocumentBytes, openImage } from './image-manifest.js'
import type { ReadableImage } from './image-template.js'
import { refused } from './image-tree.js'
import { type ImageLimits, imageLimits } from './layers.js'

interface Place {
  readonly offset: number
  readonly size: number
}

interface Index {
  readonly file: string
  /** Of regular files that may be parts of an image, by name. */
  readonly places: ReadonlyMap<string, Place>
  readonly digest: string
}

export interface ArchiveOptions {
  /** Not there yet: what a compressed archive is unpacked to. */
  readonly spool: string
  readonly limits?: ImageLimits | undefined
  readonly signal?: AbortSignal | undefined
}

const mostParts = 20_000
const partPattern =
  /^(?:manifest\.json|index\.json|oci-layout|repositories|blobs\/sha256\/[0-9a-f]{64}|[0-9a-f]{64}\.json|[^/]+\.tar(?:\.gz)?|[^/]+\/(?:layer\.tar|json|VERSION))$/

const savedSchema = deferred(() =>
  z
    .array(z.object({ Config: z.string(), Layers: z.array(z.string()).max(1024), RepoTags: z.array(z.string()).nullish() }))
    .min(1)
    .max(1024),
)

/** Throws SandboxError: 'not-found', 'invalid' for what is no archive. */
export async function openArchive(path: string, options: ArchiveOptions): Promise<ReadableImage> {
  const index = await indexOf(await plainFile(path, options), options.signal)
  const about = { kind: 'import' as const, source: basename(path) }
  if (index.places.has('index.json')) return { ...about, summary: 'an image from an archive', ...(await openLayout(index)) }
  if (index.places.has('manifest.json')) return { ...about, summary: 'an image from an archive', ...(await openSaved(index)) }
  // Read a second time: what changed meanwhile is refused as any layer would be.
  const layer = { diffId: index.digest, bytes: () => createReadStream(index.file) }
  return { ...about, summary: 'a root from an archive', digest: index.digest, config: emptyConfig, layers: [layer] }
}

async function plainFile(path: string, { spool, limits = imageLimits, signal }: ArchiveOptions): Promise<string> {
  const status = statSync(path, { throwIfNoEntry: false })
  if (status === undefined) throw new SandboxError('not-found', `there is no ${printed(path)}`)
  if (!status.isFile()) throw new SandboxError('invalid', `${printed(path)} is no file`)
  let first: Uint8Array = new Uint8Array(0)
  for await (const piece of createReadStream(path, { end: 7 })) first = piece as Uint8Array
  if (compressionOf(first) === 'none') return path
  const most = limits.bytes + limits.entries * 4096
  await pipeline(bounded(decompress(createReadStream(path)), most), createWriteStream(spool, { flags: 'wx', mode: 0o600 }), { ...(signal && { signal }) })
  return spool
}

async function* bounded(source: AsyncIterable<Uint8Array>, most: number): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0
  for await (const piece of source) {
    bytes += piece.length
    if (bytes > most) throw refused(`it has more than ${most} bytes`)
    yield piece
  }
}

async function indexOf(file: string, signal: AbortSignal | undefined): Promise<Index> {
  const places = new Map<string, Place>()
  const links = new Map<string, string>()
  const hash = createHash('sha256')
  for await (const { type, name, target, offset, size } of readTar(hashed(createReadStream(file), hash), { gnu: true })) {
    signal?.throwIfAborted()
    const path = posix.normalize(name.toString('utf8'))
    if (!partPattern.test(path) || places.size + links.size >= mostParts) continue
    if (type === 'file') places.set(path, { offset, size })
    if (type === 'link') links.set(path, posix.normalize(posix.join(posix.dirname(path), target.toString('utf8'))))
  }
  for (const [path, target] of links) {
    const place = places.get(target)
    if (place) places.set(path, place)
  }
  return { file, places, digest: `sha256:${hash.digest('hex')}` }
}

async function* hashed(source: AsyncIterable<Uint8Array>, hash: ReturnType<typeof createHash>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of source) {
    hash.update(piece)
    yield piece
  }
}

async function openLayout(index: Index): Promise<Pick<ReadableImage, 'digest' | 'config' | 'layers'>> {
  const place = (digest: string): string => `blobs/${digest.replace(':', '/')}`
  const blobs: BlobSource = { document: ({ digest }) => documentIn(index, place(digest)), layer: ({ digest }) => contentIn(index, place(digest)) }
  return openImage(await documentIn(index, 'index.json'), blobs)
}

async function openSaved(index: Index): Promise<Pick<ReadableImage, 'digest' | 'config' | 'layers'>> {
  const images = parseJson(savedSchema, await documentIn(index, 'manifest.json'), 'its manifest.json')
  const [image] = images
  if (image === undefined || images.length > 1) throw refused(`it is ${images.length} images; save one`)
  const json = await documentIn(index, posix.normalize(image.Config))
  const { config, layers } = parseConfig(json)
  if (layers.length !== image.Layers.length) throw refused(`its manifest has ${image.Layers.length} layers, and its config ${layers.length}`)
  for (const name of image.Layers) placeIn(index, posix.normalize(name))
  const read = image.Layers.map((name, at) => ({ diffId: layers[at], bytes: () => contentIn(index, posix.normalize(name)) }))
  return { digest: digestOf(json), config, layers: read }
}

function placeIn({ places }: Index, name: string): Place {
  const place = places.get(name)
  if (place === undefined) throw refused(`${printed(name)} is not in the archive`)
  return place
}

function contentIn(index: Index, name: string): AsyncIterable<Uint8Array> {
  const { offset, size } = placeIn(index, name)
  return size === 0 ? nothing() : createReadStream(index.file, { start: offset, end: offset + size - 1 })
}

async function documentIn(index: Index, name: string): Promise<Uint8Array> {
  if (placeIn(index, name).size > mostDocumentBytes) throw refused(`${printed(name)} is too large`)
  const pieces: Uint8Array[] = []
  for await (const piece of contentIn(index, name)) pieces.push(piece)
  return Buffer.concat(pieces)
}

async function* nothing(): AsyncGenerator<Uint8Array, void, undefined> {}
