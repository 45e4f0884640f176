interface Linked extends Disposable {
  readonly signal: AbortSignal
}

/** Aborts with the first of both, until it is disposed of. Unlike `AbortSignal.any`, which leaves something with a signal that lives long each time it is used. */
export function linkSignals(lasting: AbortSignal, own: AbortSignal | undefined): Linked {
  if (own === undefined) return { signal: lasting, [Symbol.dispose]: () => undefined }
  const both = new AbortController()
  const links = [lasting, own].map((source) => ({ source, abort: () => both.abort(source.reason) }))
  for (const { source, abort } of links) {
    if (source.aborted) abort()
    else source.addEventListener('abort', abort, { once: true })
  }
  return {
    signal: both.signal,
    [Symbol.dispose]: () => {
      for (const { source, abort } of links) source.removeEventListener('abort', abort)
    },
  }
}
