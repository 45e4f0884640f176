export interface Watch {
  readonly onPiece?: () => void
  /** What to throw when the source fails; by default what it threw. */
  readonly failure?: (cause: unknown) => Promise<unknown>
}

/** The same pieces, while someone looks on. */
export function watched<Piece>(source: AsyncIterable<Piece>, { onPiece, failure }: Watch): AsyncIterable<Piece> {
  return {
    [Symbol.asyncIterator]: () => {
      const pieces = source[Symbol.asyncIterator]()
      const next = async (): Promise<IteratorResult<Piece, unknown>> => {
        const result = await pieces.next().catch(async (error: unknown) => {
          throw failure ? await failure(error) : error
        })
        if (result.done !== true) onPiece?.()
        return result
      }
      return { next, return: async () => (await pieces.return?.()) ?? { done: true, value: undefined } }
    },
  }
}

/** Those of a stream that is not there. */
export const noPieces: AsyncIterable<never> = { [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }) }
