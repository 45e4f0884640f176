/** What indexes promise of the files that they name: Python's, as HTML and as JSON (PEP 503 and 691), and npm's documents of a package. */

export interface PackageHash {
  readonly algorithm: 'sha256' | 'sha512'
  /** In lower case. */
  readonly hex: string
}

export type Promised = readonly [url: string, hash: PackageHash]

const mostPromised = 20_000
/** No index has longer ones; short links in one that was found at a long place would become so many long ones. */
const mostUrlLength = 2000

/** None when it is no index, or promises nothing. `base` is where it was found. */
export function readIndex(text: string, { type, base }: { readonly type: string; readonly base: string }): readonly Promised[] {
  if (base.length > mostUrlLength) return []
  const found = /json/i.test(type) ? fromJson(text) : /html/i.test(type) ? fromHtml(text) : []
  const promised: Promised[] = []
  for (const [place, hash] of found) {
    if (promised.length === mostPromised) break
    const url = urlOf(place, base)
    if (url !== undefined && url.length <= mostUrlLength) promised.push([url, hash])
  }
  return promised
}

/** As requests are compared: without a fragment, and only what is fetched over TLS. */
export function urlOf(place: string, base: string): string | undefined {
  if (!URL.canParse(place, base)) return undefined
  const url = new URL(place, base)
  url.hash = ''
  return url.protocol === 'https:' && url.username === '' && url.password === '' ? url.href : undefined
}

function fromHtml(text: string): Promised[] {
  const links = text.matchAll(/\bhref\s*=\s*["']([^"'#]{1,4000})#sha256=([0-9a-f]{64})["']/gi)
  return [...links].map(([, place = '', hex = '']) => [place.replaceAll('&amp;', '&'), { algorithm: 'sha256', hex: hex.toLowerCase() }])
}

function fromJson(text: string): Promised[] {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    return []
  }
  const { files, versions } = fieldsOf(document)
  return [...(Array.isArray(files) ? files.flatMap(ofPython) : []), ...Object.values(fieldsOf(versions)).flatMap(ofNpm)]
}

function ofPython(file: unknown): Promised[] {
  const { url, hashes } = fieldsOf(file)
  const { sha256 } = fieldsOf(hashes)
  if (typeof url !== 'string' || typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/i.test(sha256)) return []
  return [[url, { algorithm: 'sha256', hex: sha256.toLowerCase() }]]
}

function ofNpm(version: unknown): Promised[] {
  const { tarball, integrity } = fieldsOf(fieldsOf(version).dist)
  const bytes = typeof integrity === 'string' ? /(?:^|\s)sha512-([A-Za-z0-9+/]{86}==)(?:$|\s)/.exec(integrity)?.[1] : undefined
  if (typeof tarball !== 'string' || bytes === undefined) return []
  return [[tarball, { algorithm: 'sha512', hex: Buffer.from(bytes, 'base64').toString('hex') }]]
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
