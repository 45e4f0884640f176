/** An image of a registry: its documents and layers, fetched once, compared with their digests, and kept by them. */
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { SandboxError } from '../../contract/errors.js'
import type { BuildEvent } from '../../contract/templates.js'
import { draftIn } from '../../sys/draft.js'
import { type Blob, type BlobSource, digestOf, mostDocumentBytes, openImage, wrongDigest } from './image-manifest.js'
import type { ReadableImage } from './image-template.js'
import { type ImageLimits, imageLimits } from './layers.js'
import { type ImageReference, pinned } from './reference.js'
import { type AccessOptions, bytesOf, RegistryAccess } from './registry-access.js'
import { refused } from './image-tree.js'

export interface PullOptions extends AccessOptions {
  /** Where blobs are kept, by their digests; ours alone. */
  readonly blobs: string
  readonly limits?: ImageLimits | undefined
  readonly tell: (event: BuildEvent) => void
}

const manifestTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ')
const atOnce = 3

/** What was asked for by a digest is what that says; a tag is what the registry says today. Layers are there when this resolves. */
export async function openRemote(reference: ImageReference, options: PullOptions): Promise<ReadableImage> {
  const access = new RegistryAccess(reference, options)
  options.tell({ type: 'phase', phase: 'asking', detail: `${reference.registry}/${reference.repository}` })
  const { version, isDigest } = reference
  const response = await access.get(`manifests/${version}`, { accept: manifestTypes, what: isDigest ? `manifest ${version}` : `tag ${version}` })
  const first = await bytesOf(response, mostDocumentBytes)
  if (isDigest && digestOf(first) !== version) throw wrongDigest('the manifest', version, digestOf(first))
  const image = await openImage(first, blobsOf(access, options))
  return { kind: 'pull', source: pinned(reference, digestOf(first)), summary: 'an image from a registry', ...image }
}

function blobsOf(access: RegistryAccess, options: PullOptions): BlobSource {
  return {
    document: async ({ digest }, kind) => {
      const path = kind === 'manifest' ? `manifests/${digest}` : `blobs/${digest}`
      const response = await access.get(path, { what: `${kind} ${digest}`, ...(kind === 'manifest' && { accept: manifestTypes }) })
      return bytesOf(response, mostDocumentBytes)
    },
    fetch: (layers) => fetchAll(layers, access, options),
    layer: ({ digest }) => createReadStream(placeOf(digest, options)),
  }
}

function placeOf(digest: string, { blobs }: Pick<PullOptions, 'blobs'>): string {
  return join(blobs, digest.replace('sha256:', ''))
}

async function fetchAll(layers: readonly Blob[], access: RegistryAccess, options: PullOptions): Promise<void> {
  const { limits = imageLimits, tell, signal } = options
  const different = [...new Map(layers.map((blob) => [blob.digest, blob])).values()]
  const total = different.reduce((sum, { size }) => sum + size, 0)
  if (total > limits.bytes) throw refused(`its layers have ${total} bytes, and at most ${limits.bytes} are taken`)
  tell({ type: 'phase', phase: 'downloading', detail: `${different.length} ${different.length === 1 ? 'layer' : 'layers'}, ${(total / 1e6).toFixed(1)} MB` })
  let done = 0
  const onBytes = (count: number): void => {
    done += count
    tell({ type: 'progress', phase: 'downloading', fraction: total === 0 ? 1 : Math.min(1, done / total) })
  }
  const waiting = [...different]
  const failed = new AbortController()
  const fetchSome = async (): Promise<void> => {
    for (let blob = waiting.shift(); blob && !failed.signal.aborted; blob = waiting.shift()) {
      signal?.throwIfAborted()
      if (await isKept(blob, options)) onBytes(blob.size)
      else await fetchOne(blob, access, { ...options, onBytes })
    }
  }
  const ends = await Promise.allSettled(
    Array.from({ length: atOnce }, () =>
      fetchSome().catch((error: unknown) => {
        failed.abort(error)
        throw error
      }),
    ),
  )
  if (failed.signal.aborted) throw failed.signal.reason
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

/** One that was damaged meanwhile is fetched again. */
async function isKept({ digest, size }: Blob, options: PullOptions): Promise<boolean> {
  const path = placeOf(digest, options)
  if (!existsSync(path)) return false
  const hash = createHash('sha256')
  if (statSync(path).size === size) for await (const piece of createReadStream(path)) hash.update(piece as Uint8Array)
  if (`sha256:${hash.digest('hex')}` === digest) return true
  await rm(path, { force: true })
  return false
}

interface Fetching extends PullOptions {
  readonly onBytes: (count: number) => void
}

async function fetchOne({ digest, size }: Blob, access: RegistryAccess, options: Fetching): Promise<void> {
  const response = await access.get(`blobs/${digest}`, { what: `layer ${digest}` })
  const draft = draftIn(options.blobs)
  const file = await open(draft, 'wx', 0o600)
  try {
    const hash = createHash('sha256')
    let bytes = 0
    for await (const piece of response.body) {
      bytes += piece.length
      if (bytes > size) throw new SandboxError('conflict', `layer ${digest} has more than the ${size} bytes that its manifest says`)
      hash.update(piece)
      for (let at = 0; at < piece.length; ) at += (await file.write(piece, at)).bytesWritten
      options.onBytes(piece.length)
    }
    if (bytes < size) throw new SandboxError('conflict', `layer ${digest} is cut short: ${bytes} bytes came, and its manifest says ${size}`)
    const found = `sha256:${hash.digest('hex')}`
    if (found !== digest) throw wrongDigest('a layer', digest, found)
    await file.sync()
    await rename(draft, placeOf(digest, options))
  } finally {
    await file.close()
    await rm(draft, { force: true })
  }
}
