import { mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ImageTree } from '../../../src/templates/images/image-tree.js'
import { LayerReader } from '../../../src/templates/images/layers.js'
import { pax, tar } from '../../templates/images/archives.js'
import { repaired } from '../tar-repair.js'
import { type FuzzTarget, holds, laterIn, unlessRefusedLater } from '../target.js'

const folder = join(tmpdir(), `gbx-fuzz-layers-${process.pid}`)
let turns = 0
const limits = { bytes: 1 << 20, entries: 100 }

/** Layers of images: whatever they hold, the tree that comes of them is bounded and has no name that leads elsewhere. */
export const target: FuzzTarget = {
  name: 'image-layers',
  most: 4096,
  seeds: [
    tar({ name: 'a/one', content: '1' }, { name: 'a/two', type: '2', target: 'one' }, { name: 'b/', type: '5' }),
    tar({ name: 'a/.wh.one', content: '' }, { name: 'b/.wh..wh..opq', content: '' }, { name: 'c', type: '1', target: 'a/one' }),
    tar(pax({ path: 'long/'.repeat(30), linkpath: '../../etc/passwd' }), { name: 'x', type: '2' }, { name: '../out', content: 'x' }),
    tar({ name: 'dev', type: '3' }, { name: '/abs', content: 'x', mode: 0o4755 }),
  ],
  async run(bytes) {
    // What is kept of files is taken away now and then: once for each would be most of the work.
    if (turns++ % 500 === 0) rmSync(folder, { recursive: true, force: true })
    const own = join(folder, `${turns}`)
    mkdirSync(own, { recursive: true })
    const tree = new ImageTree()
    const reader = new LayerReader({ tree, folder: own, limits })
    const archive = bytes.length % 7 === 0 ? bytes : repaired(bytes)
    await unlessRefusedLater(() => reader.add(laterIn([archive.subarray(0, 700), archive.subarray(700)])))
    holds(tree.entries <= limits.entries + 64, 'a tree has no more entries than it may')
  },
}
