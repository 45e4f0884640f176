import { Readable } from 'node:stream'
import type { CallToolResult } from '@modelcontextprotocol/server'
import type * as z from 'zod'
import { SandboxError } from '../contract/errors.js'
import type { Entry, FileCalls } from '../contract/files.js'
import { textOf } from '../contract/path-text.js'
import { linkTo, text, toolResult, uriOf } from './answers.js'
import type { Connection, Context } from './connection.js'
import { mimeOf, pictureType } from './mime.js'
import { beginning, type Seat } from './own-sandbox.js'
import type { listFilesInput, readFileInput, writeFileInput } from './schemas.js'

const mostPictureBytes = 5 * 2 ** 20

type Doing = (files: FileCalls, seat: Seat) => Promise<CallToolResult>

function withFiles(connection: Connection, act: Doing): Promise<CallToolResult> {
  return connection.sandbox.use((seat) => beginning(act(connection.sandbox.platform.files.of(seat.id), seat)))
}

/** Paths are below where commands begin, as they are for a command. */
function placed(path: string, { cwd }: Connection): string {
  return cwd === undefined || path.startsWith('/') || path.startsWith('~') ? path : `${cwd}/${path}`
}

export function readFile(connection: Connection, input: z.output<typeof readFileInput>, { mcpReq: { signal } }: Context): Promise<CallToolResult> {
  return withFiles(connection, async (files, { note }) => {
    const path = placed(input.path, connection)
    const piece = await readPiece(files, path, { offset: input.offset, length: input.length, signal })
    const told = { path: piece.entry.path, size: piece.entry.size, offset: input.offset, ...(note !== undefined && { note }) }
    const picture = input.encoding === 'auto' && input.offset === 0 ? pictureType(piece.bytes) : undefined
    if (picture !== undefined && piece.entry.size <= mostPictureBytes) {
      const whole = await readPiece(files, path, { offset: 0, length: mostPictureBytes, signal })
      const image = { type: 'image' as const, data: whole.bytes.toString('base64'), mimeType: picture }
      return toolResult({ blocks: [image], structured: { ...told, mime: picture, encoding: 'image' } })
    }
    return pieceResult(piece, { told, encoding: input.encoding })
  })
}

interface Piece {
  readonly entry: Entry
  readonly bytes: Buffer
  /** Whether there is more behind it. */
  readonly isLast: boolean
}

async function readPiece(
  files: FileCalls,
  path: string,
  { offset, length, signal }: { readonly offset: number; readonly length: number; readonly signal: AbortSignal },
): Promise<Piece> {
  const { entry, bytes } = await files.read(path, { offset, length, signal })
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  const read = Buffer.concat(chunks)
  return { entry, bytes: read, isLast: read.length < length || offset + read.length >= entry.size }
}

interface Telling {
  readonly told: { readonly path: string; readonly size: number; readonly offset: number; readonly note?: string }
  readonly encoding: 'auto' | 'text' | 'base64'
}

function pieceResult({ bytes, isLast }: Piece, { told, encoding }: Telling): CallToolResult {
  const whole = encoding === 'base64' ? undefined : textPiece(bytes, { isLast })
  if (whole === undefined && encoding === 'text') {
    throw new SandboxError('invalid', `encoding: ${told.path} is no UTF-8 text at byte ${told.offset}; read it with encoding 'base64'`)
  }
  const taken = whole?.bytes ?? bytes.length
  const next = isLast && taken === bytes.length ? undefined : told.offset + taken
  const content = whole?.text ?? bytes.toString('base64')
  const mime = mimeOf(told.path) ?? (whole === undefined ? 'application/octet-stream' : 'text/plain')
  const remark = next === undefined ? [] : [text(`[bytes ${told.offset} to ${next} of ${told.size}; read on with offset ${next}]`)]
  const notes = told.note === undefined ? [] : [text(`note: ${told.note}`)]
  return toolResult({
    blocks: [...notes, text(content), ...remark],
    structured: { ...told, mime, encoding: whole === undefined ? 'base64' : 'text', content, ...(next !== undefined && { next_offset: next }) },
  })
}

/** Text up to the last whole character; undefined for what is none. */
function textPiece(bytes: Buffer, { isLast }: { readonly isLast: boolean }): { readonly text: string; readonly bytes: number } | undefined {
  for (const back of isLast ? [0] : [0, 1, 2, 3]) {
    const found = textOf(bytes.subarray(0, bytes.length - back))
    if (found !== undefined && !found.includes('\0')) return { text: found, bytes: bytes.length - back }
  }
  return undefined
}

export function writeFile(connection: Connection, input: z.output<typeof writeFileInput>, { mcpReq: { signal } }: Context): Promise<CallToolResult> {
  const bytes = bytesOf(input)
  return withFiles(connection, async (files, { note }) => {
    const entry = await files.write(placed(input.path, connection), Readable.from([bytes]), { signal, ...(input.append ? { append: true } : { atomic: true }) })
    const mime = mimeOf(entry.path) ?? 'application/octet-stream'
    const words = `${note === undefined ? '' : `note: ${note}\n`}${entry.path} has ${entry.size} bytes now`
    return toolResult({
      blocks: [text(words), linkTo({ path: entry.path, size: entry.size, mime, description: 'written by this call' })],
      structured: { path: entry.path, uri: uriOf(entry.path), size: entry.size, ...(note !== undefined && { note }) },
    })
  })
}

function bytesOf({ content, encoding }: z.output<typeof writeFileInput>): Buffer {
  if (encoding === 'text') return Buffer.from(content)
  const compact = content.replaceAll(/\s/g, '')
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(compact) || compact.length % 4 !== 0) throw new SandboxError('invalid', 'content: is not base64')
  return Buffer.from(compact, 'base64')
}

export function listFiles(connection: Connection, input: z.output<typeof listFilesInput>, { mcpReq: { signal } }: Context): Promise<CallToolResult> {
  return withFiles(connection, async (files, { note }) => {
    const path = placed(input.path, connection)
    const entries: Entry[] = []
    let isCut = false
    for await (const entry of files.list(path, { depth: input.depth, signal, ...(input.glob !== undefined && { glob: input.glob }) })) {
      isCut = entries.length === input.limit
      if (isCut) break
      entries.push(entry)
    }
    entries.sort((one, other) => (one.path < other.path ? -1 : 1))
    const lines = entries.map(
      (entry) =>
        `${entry.type === 'folder' ? `${entry.path}/` : entry.path}${entry.type === 'file' ? ` (${entry.size} bytes)` : ''}${entry.target === undefined ? '' : ` -> ${entry.target}`}`,
    )
    const remarks = [
      ...(note === undefined ? [] : [`note: ${note}`]),
      ...(isCut ? [`note: only the first ${input.limit} are listed; narrow it with path, glob or depth`] : []),
    ]
    return toolResult({
      blocks: [text([...remarks, ...(lines.length === 0 ? ['nothing is there'] : lines)].join('\n'))],
      structured: { path, entries: entries.map(toldEntry), truncated: isCut, ...(note !== undefined && { note }) },
    })
  })
}

function toldEntry({ path, type, size, modifiedAt, target }: Entry) {
  return { path, type, size, modified: modifiedAt.toISOString(), ...(target !== undefined && { target }) }
}
