/** How long a request is worth answering: until whoever asked is gone, calls it off, or asked by a key that holds no more. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { SandboxError } from '../contract/errors.js'
import type { Actor } from '../contract/tenants.js'
import { wireHeaders } from '../contract/wire/media.js'
import type { Desk } from './desk.js'
import type { Standing } from './standing.js'

/** So long whoever is cut off has to read why. */
export const farewellMs = 1000

export interface Following {
  /** Aborts when the answer is for nobody any more, or it was called off by the name that it was given. */
  readonly signal: AbortSignal
  /** The same without the last. */
  readonly gone: AbortSignal
  /** It is also the business of this one, by whose key it ends. */
  readonly onBehalfOf: (actor: Actor) => void
  readonly done: () => void
}

export interface FollowParts {
  readonly desk: Desk
  readonly standing: Standing
}

export function follow(request: IncomingMessage, response: ServerResponse, { desk, standing }: FollowParts): Following {
  const [calling, leaving] = [new AbortController(), new AbortController()]
  const undo: (() => void)[] = []
  const end = (reason: SandboxError): void => {
    leaving.abort(reason)
    calling.abort(reason)
  }
  const onClose = (): void => {
    if (!response.writableFinished) end(new SandboxError('closed', 'whoever asked is gone'))
  }
  const cut = (reason: SandboxError): void => {
    end(reason)
    // One that does not read, or sends without end, is not waited for.
    setTimeout(() => response.destroy(), farewellMs).unref()
  }
  response.once('close', onClose)
  undo.push(() => response.off('close', onClose))
  const named = request.headers[wireHeaders.call]
  return {
    signal: calling.signal,
    gone: leaving.signal,
    onBehalfOf: ({ key, tenant }) => {
      if (key !== '') undo.push(standing.hold(key, cut))
      if (key === '' || typeof named !== 'string' || !/^[a-z0-9]{16,64}$/.test(named)) return
      desk.calls.add(tenant, calling, named)
      undo.push(() => desk.calls.remove(named))
    },
    done: () => {
      for (const each of undo) each()
    },
  }
}
