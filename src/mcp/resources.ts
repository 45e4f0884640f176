/** The files of the sandbox as resources: `sandbox:///workspace/chart.png`. Those that executions made are listed; any other can be read by its path. */
import {
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
  ResourceTemplate,
} from '@modelcontextprotocol/server'
import { SandboxError } from '../contract/errors.js'
import { textOf } from '../contract/path-text.js'
import { uriOf } from './answers.js'
import type { Connection } from './connection.js'
import { mimeOf, pictureType } from './mime.js'
import { beginning } from './own-sandbox.js'

const mostBytes = 8 * 2 ** 20

export function addResources(server: McpServer, connection: Connection): void {
  const template = new ResourceTemplate('sandbox://{+path}', {
    list: () => ({
      resources: [...connection.artifacts.values()].reverse().map(({ path, mime, size, change }) => ({
        uri: uriOf(path),
        name: path.slice(path.lastIndexOf('/') + 1),
        description: `${path}, ${change} by code`,
        mimeType: mime,
        size,
      })),
    }),
  })
  const config = { title: 'File of the sandbox', description: `A file by its absolute path; at most ${mostBytes} bytes` }
  server.registerResource('file', template, config, async (uri, _variables, context) => {
    try {
      return await connection.turns.take(() => read(connection, uri, context.mcpReq.signal), context.mcpReq.signal)
    } catch (error) {
      throw asProtocolError(error, uri)
    }
  })
}

async function read(connection: Connection, uri: URL, signal: AbortSignal): Promise<ReadResourceResult> {
  const path = decoded(uri)
  const bytes = await connection.sandbox.use(({ id }) => beginning(readAll(connection, { id, path, signal })))
  const content = textOf(bytes)
  const mimeType = mimeOf(path) ?? pictureType(bytes) ?? (content === undefined ? 'application/octet-stream' : 'text/plain')
  const isText = content !== undefined && !content.includes('\0')
  return { contents: [{ uri: uri.href, mimeType, ...(isText ? { text: content } : { blob: bytes.toString('base64') }) }] }
}

async function readAll(
  connection: Connection,
  { id, path, signal }: { readonly id: string; readonly path: string; readonly signal: AbortSignal },
): Promise<Buffer> {
  const { entry, bytes } = await connection.sandbox.platform.files.of(id).read(path, { length: mostBytes + 1, signal })
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  const all = Buffer.concat(chunks)
  if (all.length > mostBytes)
    throw new SandboxError('invalid', `${path} has ${entry.size} bytes, and a resource at most ${mostBytes}; read it with read_file, offset by offset`)
  return all
}

function decoded(uri: URL): string {
  try {
    // What stands where a host would is the first part of a path that was written without its slash.
    return decodeURIComponent(`${uri.host === '' ? '' : `/${uri.host}`}${uri.pathname}`)
  } catch {
    throw new SandboxError('invalid', 'uri: is not encoded as a URI must be')
  }
}

function asProtocolError(error: unknown, uri: URL): unknown {
  if (!(error instanceof SandboxError)) return error
  if (error.code === 'not-found') return new ResourceNotFoundError(uri.href)
  const code =
    error.code === 'invalid' || error.code === 'denied' || error.code === 'conflict' ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError
  return new ProtocolError(code, `${error.code}: ${error.message}`)
}
