import { extname } from 'node:path'

const byExtension: Readonly<Record<string, string>> = {
  '.csv': 'text/csv',
  '.gif': 'image/gif',
  '.html': 'text/html',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.py': 'text/x-python',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain',
  '.webp': 'image/webp',
}

/** By its name, which is all that is known before it is read; undefined where that says nothing. */
export function mimeOf(path: string): string | undefined {
  return byExtension[extname(path).toLowerCase()]
}

const signatures: readonly (readonly [mime: string, bytes: string])[] = [
  ['image/png', '89504e470d0a1a0a'],
  ['image/jpeg', 'ffd8ff'],
  ['image/gif', '474946383'],
  ['image/webp', '52494646'],
]

/** A picture that clients can show, told by its first bytes: a name alone would be the guest's word. */
export function pictureType(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.subarray(0, 16)).toString('hex')
  const found = signatures.find(([, signature]) => head.startsWith(signature))?.[0]
  return found === 'image/webp' && head.slice(16, 24) !== '57454250' ? undefined : found
}
