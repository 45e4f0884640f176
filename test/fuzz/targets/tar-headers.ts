import { blockBytes, encodeHeader, parseHeader, parsePax, withPax } from '../../../src/sys/tar-header.js'
import { readTar } from '../../../src/sys/tar-reader.js'
import { readTar as readSnapshot } from '../../../src/engine/snapshots-tar-reader.js'
import { pax, tar } from '../../templates/images/archives.js'
import { repaired } from '../tar-repair.js'
import { type FuzzTarget, holds, isSame, laterIn, unlessRefused, unlessRefusedLater } from '../target.js'

async function readAll(entries: AsyncIterable<{ readonly content: AsyncIterable<Uint8Array> }>, length: number): Promise<void> {
  let total = 0
  for await (const { content } of entries) for await (const piece of content) total += piece.length
  holds(total <= length, 'no more content comes out than went in')
}

/** Archives of templates and of snapshots. */
export const target: FuzzTarget = {
  name: 'tar-headers',
  most: 4096,
  seeds: [
    tar({ name: 'a/one', content: '1' }, { name: 'a/two', type: '2', target: 'one' }),
    tar(pax({ path: 'x'.repeat(150), size: '3', mtime: '1.5' }), { name: 'x', content: 'abc' }),
    tar({ name: 'long', type: 'L', content: `${'n'.repeat(120)}\0` }, { name: 'n', content: 'x' }),
    tar({ name: 'd/', type: '5', mode: 0o755 }, { name: 'd/f', content: 'y'.repeat(600) }, { name: 'p', type: '6' }),
  ],
  async run(bytes) {
    const archive = bytes.length % 5 === 0 ? Buffer.from(bytes) : repaired(bytes)
    if (archive.length >= blockBytes) {
      const header = unlessRefused(() => parseHeader(archive.subarray(0, blockBytes)))
      if (header && ['file', 'folder', 'link'].includes(header.type) && header.name.length <= 100) {
        const again = unlessRefused(() => parseHeader(encodeHeader(header).subarray(-blockBytes)))
        if (again)
          isSame(
            [again.type, again.name, again.mode, again.size],
            [header.type, header.name, header.mode, header.type === 'folder' ? again.size : header.size],
            'a header that is written is read as it was',
          )
        const fields = unlessRefused(() => parsePax(archive.subarray(blockBytes)))
        if (fields) unlessRefused(() => withPax(header, fields))
      }
    }
    const pieces = [archive.subarray(0, 513), archive.subarray(513)]
    const turn = bytes.reduce((sum, byte) => sum + byte, 0) % 3
    const entries = turn === 0 ? readSnapshot(laterIn(pieces)) : readTar(laterIn(pieces), { gnu: turn === 1 })
    await unlessRefusedLater(() => readAll(entries, archive.length))
  },
}
