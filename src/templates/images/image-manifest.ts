/** The documents between a reference and layers: an index names manifests by machine, a manifest names a config and layers, each by its digest. */
import { createHash } from 'node:crypto'
import * as z from 'zod'
import { deferred } from '../../contract/deferred.js'
import { SandboxError } from '../../contract/errors.js'
import { printed } from './entry-path.js'
import { machineHere, parseConfig, parseJson } from './image-config.js'
import { refused } from './image-tree.js'
import type { ReadableImage } from './image-template.js'

export const digestPattern = /^sha256:[0-9a-f]{64}$/

/** Documents are held in memory. */
export const mostDocumentBytes = 4 * 2 ** 20

export interface Blob {
  readonly digest: string
  readonly size: number
  readonly mediaType?: string | undefined
}

/** Where the parts of an image are. What it hands out need not be what the digest says: that is looked at here. */
export interface BlobSource {
  /** At most `mostDocumentBytes`. */
  document(blob: Pick<Blob, 'digest'> & Partial<Blob>, kind: 'manifest' | 'config'): Promise<Uint8Array>
  /** Called once for each layer, before any is read. */
  fetch?(layers: readonly Blob[]): Promise<void>
  layer(blob: Blob): AsyncIterable<Uint8Array>
}

const blobSchema = z.object({
  mediaType: z.string().optional(),
  digest: z.string().regex(digestPattern, 'must be a SHA-256 digest'),
  size: z.int().min(0),
})

const manifestSchema = deferred(() => z.object({ schemaVersion: z.literal(2), config: blobSchema, layers: z.array(blobSchema).max(1024) }))

const indexSchema = deferred(() =>
  z.object({
    schemaVersion: z.literal(2).optional(),
    manifests: z
      .array(
        blobSchema.extend({
          platform: z.object({ architecture: z.string().optional(), os: z.string().optional(), variant: z.string().optional() }).nullish(),
        }),
      )
      .max(1024),
  }),
)

const mostIndexes = 4

export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

/** From the first document to an image whose layers can be read. `digest` is what names it from now on. */
export async function openImage(first: Uint8Array, blobs: BlobSource): Promise<Pick<ReadableImage, 'digest' | 'config' | 'layers'>> {
  let document = first
  for (let depth = 0; isIndex(document); depth += 1) {
    if (depth === mostIndexes) throw refused('its indexes have no end')
    document = await checked(choose(document), 'manifest', blobs)
  }
  const { config: configBlob, layers } = parseJson(manifestSchema, document, 'its manifest')
  for (const { mediaType } of layers) checkType(mediaType)
  const { config, layers: diffIds } = parseConfig(await checked(configBlob, 'config', blobs))
  if (diffIds.length !== layers.length) throw refused(`its manifest has ${layers.length} layers, and its config ${diffIds.length}`)
  await blobs.fetch?.(layers)
  return { digest: digestOf(document), config, layers: layers.map((blob, index) => ({ diffId: diffIds[index], bytes: () => blobs.layer(blob) })) }
}

async function checked(blob: Blob, kind: 'manifest' | 'config', blobs: BlobSource): Promise<Uint8Array> {
  if (blob.size > mostDocumentBytes) throw refused(`its ${kind} has ${blob.size} bytes`)
  const bytes = await blobs.document(blob, kind)
  if (digestOf(bytes) !== blob.digest) throw wrongDigest(`the ${kind}`, blob.digest, digestOf(bytes))
  return bytes
}

export function wrongDigest(what: string, expected: string, found: string): SandboxError {
  return new SandboxError('conflict', `${what} is not what its digest says: it should be ${expected}, and is ${found}`)
}

function isIndex(document: Uint8Array): boolean {
  const value = parseJson(
    z.object({ manifests: z.unknown().optional(), schemaVersion: z.unknown().optional(), fsLayers: z.unknown().optional() }),
    document,
    'its manifest',
  )
  if (value.fsLayers !== undefined || value.schemaVersion === 1)
    throw new SandboxError('unsupported', 'the image has a manifest of the first kind, which names nothing by its content', {
      hint: 'push it anew with a tool of today',
    })
  return value.manifests !== undefined
}

/** That of this machine; where machines are not told apart, the only one. */
function choose(document: Uint8Array): Blob {
  const { manifests } = parseJson(indexSchema, document, 'its index')
  const here = manifests.find(({ platform }) => platform?.os === 'linux' && platform.architecture === machineHere())
  const only = manifests.length === 1 && manifests[0]?.platform?.architecture === undefined ? manifests[0] : undefined
  const chosen = here ?? only
  if (chosen !== undefined) return chosen
  const there = manifests.map(({ platform }) => printed(`${platform?.os ?? '?'}/${platform?.architecture ?? '?'}`))
  throw new SandboxError('unsupported', `the image is not for linux/${machineHere()}; it is for ${[...new Set(there)].join(', ') || 'nothing'}`)
}

function checkType(mediaType: string | undefined): void {
  if (mediaType === undefined || /(?:\.tar|\.layer\.v1\.tar|rootfs\.diff\.tar|rootfs\.foreign\.diff\.tar)(?:[.+]?(?:gzip|zstd))?$/.test(mediaType)) return
  throw new SandboxError('unsupported', `the image has a layer of the kind ${printed(mediaType)}`)
}
