interface Linked {
  readonly signal: AbortSignal
  /** Nothing of it is left with either. Idempotent. */
  release(): void
}

/** Aborts with the first of both. Unlike `AbortSignal.any`, which leaves something with a signal that lives long each time it is used. */
export function linkSignals(lasting: AbortSignal, own: AbortSignal | undefined): Linked {
  if (own === undefined) return { signal: lasting, release: () => undefined }
  const both = new AbortController()
  const links = [lasting, own].map((source) => ({ source, abort: () => both.abort(source.reason) }))
  for (const { source, abort } of links) {
    if (source.aborted) abort()
    else source.addEventListener('abort', abort, { once: true })
  }
  return {
    signal: both.signal,
    release: () => {
      for (const { source, abort } of links) source.removeEventListener('abort', abort)
    },
  }
}
