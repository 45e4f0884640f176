/** Tar archives block by block, also such as no honest tool writes. */
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'

export interface RawEntry {
  readonly name: string | Buffer
  /** The type's letter; '0' is a file. */
  readonly type?: string
  readonly content?: string | Buffer
  readonly target?: string | Buffer
  readonly mode?: number
  /** What the header says instead of the content's length. */
  readonly size?: number
}

const block = 512

function bytes(text: string | Buffer): Buffer {
  return typeof text === 'string' ? Buffer.from(text) : text
}

export function header({ name, type = '0', target = '', mode = 0o644, ...rest }: RawEntry): Buffer {
  const head = Buffer.alloc(block)
  bytes(name).copy(head, 0, 0, 100)
  head.write(`${mode.toString(8).padStart(7, '0')}\0`, 100)
  head.write('0000000\0'.repeat(2), 108)
  head.write(`${(rest.size ?? bytes(rest.content ?? '').length).toString(8).padStart(11, '0')}\0`, 124)
  head.write('00000000000\0', 136)
  head.write(' '.repeat(8), 148)
  head.write(type, 156, 'latin1')
  bytes(target).copy(head, 157, 0, 100)
  head.write('ustar\u000000', 257, 'latin1')
  head.write(
    `${head
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  )
  return head
}

export function padded(content: string | Buffer): Buffer {
  const whole = bytes(content)
  return Buffer.concat([whole, Buffer.alloc((block - (whole.length % block)) % block)])
}

export function pax(fields: Readonly<Record<string, string | Buffer>>): Buffer {
  const records = Object.entries(fields).map(([key, value]) => {
    const rest = Buffer.concat([Buffer.from(` ${key}=`), bytes(value), Buffer.from('\n')])
    let length = rest.length
    while (String(length).length + rest.length !== length) length = String(length).length + rest.length
    return Buffer.concat([Buffer.from(String(length)), rest])
  })
  const content = Buffer.concat(records)
  return Buffer.concat([header({ name: 'pax', type: 'x', content }), padded(content)])
}

/** Entries, or blocks that are there already. */
export function tar(...entries: readonly (RawEntry | Buffer)[]): Buffer {
  const parts = entries.map((entry) => (Buffer.isBuffer(entry) ? entry : Buffer.concat([header(entry), padded(entry.content ?? '')])))
  return Buffer.concat([...parts, Buffer.alloc(2 * block)])
}

export function digest(content: string | Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`
}

export interface MadeImage {
  readonly config: Buffer
  readonly manifest: Buffer
  /** As they travel, by digest. */
  readonly blobs: ReadonlyMap<string, Buffer>
  readonly layers: readonly Buffer[]
}

const machines: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

/** An OCI image of these layers, each gzipped. */
export function image(layers: readonly Buffer[], config: Readonly<Record<string, unknown>> = {}): MadeImage {
  const packed = layers.map((layer) => gzipSync(layer))
  const document = Buffer.from(
    JSON.stringify({ architecture: machines[process.arch], os: 'linux', config, rootfs: { type: 'layers', diff_ids: layers.map(digest) } }),
  )
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: digest(document), size: document.length },
      layers: packed.map((layer) => ({ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', digest: digest(layer), size: layer.length })),
    }),
  )
  const blobs = new Map([document, manifest, ...packed].map((blob) => [digest(blob), blob]))
  return { config: document, manifest, blobs, layers }
}

/** What `skopeo copy … oci-archive:` writes. */
export function layoutArchive({ manifest, blobs }: MadeImage): Buffer {
  const index = { schemaVersion: 2, manifests: [{ mediaType: 'application/vnd.oci.image.manifest.v1+json', digest: digest(manifest), size: manifest.length }] }
  return tar(
    { name: 'oci-layout', content: '{"imageLayoutVersion":"1.0.0"}' },
    { name: 'index.json', content: JSON.stringify(index) },
    ...[...blobs].map(([name, content]) => ({ name: `blobs/${name.replace(':', '/')}`, content })),
  )
}

/** What `docker save` writes. */
export function savedArchive({ config, layers }: MadeImage): Buffer {
  const hex = digest(config).slice(7)
  const names = layers.map((_, index) => `${String(index).padStart(64, '0')}/layer.tar`)
  return tar(
    ...layers.map((content, index) => ({ name: names[index] ?? '', content })),
    { name: `${hex}.json`, content: config },
    { name: 'manifest.json', content: JSON.stringify([{ Config: `${hex}.json`, RepoTags: ['some:tag'], Layers: names }]) },
  )
}

export async function* inPieces(whole: Buffer, size = 1000): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < whole.length; at += size) yield whole.subarray(at, at + size)
}
