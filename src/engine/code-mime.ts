/** What kind of file something is: by its name, and by its first bytes where the name says nothing. */

const byExtension: Readonly<Record<string, string>> = {
  avif: 'image/avif',
  bmp: 'image/bmp',
  bz2: 'application/x-bzip2',
  c: 'text/x-c',
  css: 'text/css',
  csv: 'text/csv',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  epub: 'application/epub+zip',
  feather: 'application/vnd.apache.arrow.file',
  flac: 'audio/flac',
  gif: 'image/gif',
  gz: 'application/gzip',
  h5: 'application/x-hdf5',
  html: 'text/html',
  ico: 'image/vnd.microsoft.icon',
  ipynb: 'application/x-ipynb+json',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  js: 'text/javascript',
  json: 'application/json',
  jsonl: 'application/jsonl',
  log: 'text/plain',
  md: 'text/markdown',
  mjs: 'text/javascript',
  mp3: 'audio/mpeg',
  mp4: 'video/mp4',
  npy: 'application/x-npy',
  npz: 'application/x-npz',
  ods: 'application/vnd.oasis.opendocument.spreadsheet',
  odt: 'application/vnd.oasis.opendocument.text',
  parquet: 'application/vnd.apache.parquet',
  pdf: 'application/pdf',
  pkl: 'application/x-pickle',
  png: 'image/png',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  py: 'text/x-python',
  rs: 'text/x-rust',
  sh: 'application/x-sh',
  sql: 'application/sql',
  sqlite: 'application/vnd.sqlite3',
  svg: 'image/svg+xml',
  tar: 'application/x-tar',
  tex: 'application/x-tex',
  tif: 'image/tiff',
  tiff: 'image/tiff',
  toml: 'application/toml',
  ts: 'text/x-typescript',
  tsv: 'text/tab-separated-values',
  txt: 'text/plain',
  wasm: 'application/wasm',
  wav: 'audio/wav',
  webm: 'video/webm',
  webp: 'image/webp',
  xls: 'application/vnd.ms-excel',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  xml: 'application/xml',
  xz: 'application/x-xz',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  zip: 'application/zip',
  zst: 'application/zstd',
}

/** In Latin-1; a dot stands for any byte. */
const bySignature: readonly (readonly [signature: string, mime: string])[] = [
  ['\x89PNG\r\n\x1a\n', 'image/png'],
  ['\xff\xd8\xff', 'image/jpeg'],
  ['GIF8', 'image/gif'],
  ['RIFF....WEBP', 'image/webp'],
  ['RIFF....WAVE', 'audio/wav'],
  ['%PDF-', 'application/pdf'],
  ['PK\x03\x04', 'application/zip'],
  ['PK\x05\x06', 'application/zip'],
  ['\x1f\x8b', 'application/gzip'],
  ['BZh', 'application/x-bzip2'],
  ['\xfd7zXZ\x00', 'application/x-xz'],
  ['\x28\xb5\x2f\xfd', 'application/zstd'],
  ['SQLite format 3\x00', 'application/vnd.sqlite3'],
  ['\x89HDF\r\n\x1a\n', 'application/x-hdf5'],
  ['PAR1', 'application/vnd.apache.parquet'],
  ['ARROW1', 'application/vnd.apache.arrow.file'],
  ['\x93NUMPY', 'application/x-npy'],
  ['\x7fELF', 'application/x-elf'],
  ['\x00asm', 'application/wasm'],
  ['#!', 'text/x-shellscript'],
  ['<?xml', 'application/xml'],
  ['<!DOCTYPE html', 'text/html'],
  ['<svg', 'image/svg+xml'],
]

/** As many bytes as are looked at. */
export const signatureBytes = 512

export function mimeByName(path: string): string | undefined {
  const extension = /\.([A-Za-z0-9]{1,10})$/.exec(path.slice(path.lastIndexOf('/') + 1))?.[1]?.toLowerCase()
  return extension !== undefined && Object.hasOwn(byExtension, extension) ? byExtension[extension] : undefined
}

export function mimeByContent(first: Uint8Array): string {
  const begin = Buffer.from(first.subarray(0, signatureBytes)).toString('latin1')
  const found = bySignature.find(([signature]) => Array.from(signature).every((character, at) => character === '.' || begin[at] === character))
  return found?.[1] ?? (isText(first) ? 'text/plain' : 'application/octet-stream')
}

function isText(bytes: Uint8Array): boolean {
  if (bytes.includes(0)) return false
  try {
    // The last character may be cut.
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return true
  } catch {
    return false
  }
}
