import type { Transport, WireResponse } from '../../src/contract/wire/transport.js'
import { FrameReader, frameTypes } from '../../src/contract/wire/frames.js'
import { media } from '../../src/contract/wire/media.js'
import type { Shape } from '../../src/contract/wire/pieces.js'
import { shapes } from '../../src/contract/wire/shapes.js'
import { Router } from '../../src/server/router.js'

/** The same, with everything that is answered held to what the contract says of it. */
export function checkedTransport(transport: Transport): Transport {
  const router = new Router()
  return {
    ...transport,
    request: async (request) => {
      const response = await transport.request(request)
      const name = router.match(request.method, request.path.split('?')[0] ?? '')?.name
      if (name === undefined || response.status >= 300) return response
      return { ...response, body: checkedBody(response, { name, shape: shapes[name] }) }
    },
  }
}

interface Expected {
  readonly name: string
  readonly shape: Shape
}

async function* checkedBody(response: WireResponse, { name, shape }: Expected): AsyncGenerator<Uint8Array, void, undefined> {
  const type = response.header('content-type')
  const frames = new FrameReader()
  const pieces: Uint8Array[] = []
  for await (const piece of response.body) {
    if (type === media.json) pieces.push(piece)
    if (type === media.frames)
      for (const { type: kind, payload } of frames.push(piece)) if (kind === frameTypes.json && payload.length > 0) check(payload, `${name} event`, shape.event)
    yield piece
  }
  if (type === media.json) check(Buffer.concat(pieces), `${name} reply`, shape.reply)
}

function check(bytes: Uint8Array, what: string, schema: Shape['reply']): void {
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes))
  if ((value as { readonly type?: unknown }).type === 'error' && what.endsWith('event')) return
  if (!schema) throw new Error(`${what}: nothing says that there is one`)
  const { error } = schema.safeParse(value)
  if (error) throw new Error(`${what} is not what the contract says: ${JSON.stringify(error.issues)} in ${JSON.stringify(value).slice(0, 500)}`)
}
