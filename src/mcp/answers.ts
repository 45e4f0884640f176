/** What tools answer with: text that an agent reads, the same as data, pictures, and links to files. */
import type { CallToolResult } from '@modelcontextprotocol/server'
import { errorTable, SandboxError } from '../contract/errors.js'
import { wellFormed } from '../contract/path-text.js'

export type Block = CallToolResult['content'][number]

export interface Answer {
  readonly blocks: readonly Block[]
  readonly structured: Record<string, unknown>
  readonly isError?: boolean
}

export function text(words: string): Block {
  return { type: 'text', text: wellFormed(words) }
}

export function toolResult({ blocks, structured, isError = false }: Answer): CallToolResult {
  return { content: [...blocks], structuredContent: structured, ...(isError && { isError }) }
}

/** The path of a file as the address of a resource. */
export function uriOf(path: string): string {
  return `sandbox://${path.split('/').map(encodeURIComponent).join('/')}`
}

export function linkTo({
  path,
  size,
  mime,
  description,
}: {
  readonly path: string
  readonly size: number
  readonly mime: string
  readonly description: string
}): Block {
  return { type: 'resource_link', uri: uriOf(path), name: wellFormed(path.slice(path.lastIndexOf('/') + 1)) || path, description, mimeType: mime, size }
}

/** What an agent can do next, by what went wrong. */
const nextActs: Partial<Record<SandboxError['code'], string>> = {
  invalid: 'Change the arguments as the message says and call the tool again.',
  denied: 'The sandbox does not allow this. Write only below /workspace, /tmp or the home folder; do not try to get around it.',
  'not-found': 'Look with list_files at what is there.',
  conflict: 'Look at what is there first, then call again with what fits.',
  busy: 'Wait for a call that is under way, then call again.',
  full: 'There is no room left. Remove files that are not needed with run_command (rm), then call again.',
  expired: 'Call again: the next call makes a new sandbox, without the files and variables of this one.',
  closed: 'Call again: the next call makes a new sandbox, without the files and variables of this one.',
  broken: 'Call again: the next call makes a new sandbox, without the files and variables of this one.',
  unsupported: 'This cannot be done here. Tell the user; the flags of `glovebox mcp` decide it.',
  unavailable: 'No sandbox can be made on this machine. Tell the user to run `glovebox doctor`.',
  'not-enforced': 'A limit could not be enforced, so nothing was run. Tell the user to run `glovebox doctor`.',
}

/** A failure of ours, not of what was run: told so that an agent can act on it. */
export function failure(error: unknown): CallToolResult {
  if (!(error instanceof SandboxError)) throw error
  const { code, hint } = error
  const message = error.message.replace(/^files\.\w+ /, '')
  const next = nextActs[code] ?? 'Tell the user.'
  const words = `${code}: ${message}\n${hint === undefined ? '' : `hint: ${hint}\n`}${next}`
  return {
    content: [text(words)],
    structuredContent: { failure: { code, message, ...(hint !== undefined && { hint }), next, retryable: errorTable[code].retryable } },
    isError: true,
  }
}
