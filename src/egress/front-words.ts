/** What a program is told when it gets nothing, or not all: in words, so that whoever reads them knows what to do. */
import { EgressError } from './egress-error.js'
import type { Denial } from './gate-types.js'

export type Header = readonly [name: string, value: string]

/** An answer of our own. */
export interface Word {
  readonly status: number
  readonly headers: readonly Header[]
  readonly body: string
}

export function denialWord(denial: Denial): Word {
  return wordOf(denial.status, { name: 'x-glovebox-denied', message: denial.message })
}

const statuses: Partial<Record<EgressError['code'], number>> = { 'timed-out': 504, budget: 429, closed: 503 }

export function failureWord(error: unknown): Word {
  const status = error instanceof EgressError ? (statuses[error.code] ?? 502) : 502
  return wordOf(status, { name: 'x-glovebox-failed', message: failureText(error) })
}

/** Only our own errors are fit for the guest: others may name what is on the host. */
export function failureText(error: unknown): string {
  return error instanceof EgressError ? error.message : 'the connection broke off'
}

function wordOf(status: number, { name, message }: { name: string; message: string }): Word {
  const line = message.replace(/[^\x20-\x7e]/g, '?')
  const body = `glovebox: ${line}\n`
  const headers: Header[] = [
    ['content-type', 'text/plain; charset=utf-8'],
    ['content-length', String(Buffer.byteLength(body))],
    ['cache-control', 'no-store'],
    [name, line],
  ]
  return { status, headers, body }
}

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  408: 'Request Timeout',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

/** For a connection on which nothing else can be said. */
export function wordBytes({ status, headers, body }: Word): Buffer {
  const lines = [`HTTP/1.1 ${status} ${reasons[status] ?? 'Error'}`, ...headers.map(([name, value]) => `${name}: ${value}`), 'connection: close', '', body]
  return Buffer.from(lines.join('\r\n'), 'latin1')
}
