/** The types of what is carried over HTTP. */
export const media = {
  json: 'application/json',
  bytes: 'application/octet-stream',
  tar: 'application/x-tar',
  ndjson: 'application/x-ndjson',
  sse: 'text/event-stream',
  /** Of clients of ours. */
  frames: 'application/vnd.glovebox.frames',
} as const

/** The name of what a connection is turned into to carry bytes to a port. */
export const tunnelProtocol = 'glovebox-tunnel'

export const wireHeaders = {
  /** What a file is, beside its bytes: base64 of JSON. */
  entry: 'glovebox-entry',
  /** A name that the caller gives to a call, so that it can be called off. */
  call: 'glovebox-call',
  idempotency: 'idempotency-key',
} as const
