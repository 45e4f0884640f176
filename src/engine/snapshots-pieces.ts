const pieceBytes = 65_536

/** The same bytes in fewer pieces: an archive of small files is made of very many very small ones, and each costs as much as a large one on its way. */
export async function* inPieces(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  for await (const piece of source) {
    if (piece.length === 0) continue
    // What comes may be overwritten when more is asked for.
    waiting.push(Uint8Array.prototype.slice.call(piece))
    bytes += piece.length
    if (bytes < pieceBytes) continue
    yield Buffer.concat(waiting)
    waiting = []
    bytes = 0
  }
  if (bytes > 0) yield Buffer.concat(waiting)
}
