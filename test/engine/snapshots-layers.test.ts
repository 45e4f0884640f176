import { expect, test } from 'vitest'
import type { StoredSnapshot } from '../../src/contract/snapshot-store.js'
import { checkRoom } from '../../src/engine/restoring.js'
import { isOwn, type KeptLayer, keptLayers, layerOf, pathInCell } from '../../src/engine/snapshots-layers.js'
import { parseSpec } from '../../src/policy/spec.js'

const folder = (path: string) => ({ kind: 'folder', path }) as const

test('every folder of its own is kept, under one name wherever the workspace is, but for shared memory', () => {
  const layers = [folder('/var/here'), folder('/tmp'), folder('/dev/shm'), folder('/home/user')]
  expect(keptLayers({ layers, workdir: '/var/here' }, [])).toEqual([
    { path: '/home/user', prefix: 'home/user', mounts: [] },
    { path: '/tmp', prefix: 'tmp', mounts: [] },
    { path: '/var/here', prefix: 'workspace', mounts: [] },
  ])
})

test('an overlay of which nobody can tell what lies beneath is refused, by its path', () => {
  const layers = [folder('/workspace'), { kind: 'overlay', path: '/usr', index: 0 } as const]
  expect(() => keptLayers({ layers, workdir: '/workspace' }, [])).toThrow(
    expect.objectContaining({ code: 'unsupported', message: expect.stringContaining('nobody can tell what lies beneath the overlay on /usr') }),
  )
})

test('of a root that is the cell’s own, what lies in another layer is that layer’s', () => {
  const given = [{ path: 'tmp', type: 'folder', mode: 0o1777, target: '' }] as const
  const layers = [{ ...folder('/'), given, mounted: ['/proc', '/etc/file'] }, { kind: 'overlay', path: '/usr', index: 3 } as const, folder('/dev/shm')]
  const kept = keptLayers({ layers, workdir: '/workspace', beneath: () => Promise.reject(new Error('not asked for')) }, [])
  expect(kept.map(({ path, prefix, mounts, given: told, over }) => ({ path, prefix, mounts, told, index: over?.index }))).toEqual([
    { path: '/', prefix: '', mounts: ['proc', 'etc/file', 'usr', 'dev/shm'], told: given, index: undefined },
    { path: '/usr', prefix: 'usr', mounts: [], told: undefined, index: 3 },
  ])
  expect(['usr/bin/x', 'usrx', 'tmp/a', 'usr'].map((path) => layerOf(path, kept)?.path)).toEqual(['/usr', '/', '/', '/'])
  expect(['usr/bin/x', 'tmp/a'].map((path) => Buffer.from(pathInCell({ path }, kept)).toString())).toEqual(['/usr/bin/x', '/tmp/a'])
  expect(['usr', 'proc', 'etc', 'etc/file', 'etc/other', 'tmp'].filter((path) => isOwn(path, kept[0] as KeptLayer))).toEqual(['etc/other', 'tmp'])
})

test('what is mounted below a folder is the host’s, with the folders on the way; what is beside it is not', () => {
  const mount = { source: '/srv', target: '/workspace/deps/é', mode: 'ro' } as const
  const [layer] = keptLayers({ layers: [folder('/workspace')], workdir: '/workspace' }, [mount, { ...mount, target: '/workspaces/x' }])
  if (!layer) throw new Error('one layer')
  expect(layer.mounts).toEqual(['deps/\xc3\xa9'])
  const paths = ['', 'deps', 'deps/\xc3\xa9', 'deps/\xc3\xa9/x', 'deps/other', 'depsx', 'a']
  expect(paths.filter((path) => isOwn(path, layer))).toEqual(['deps/other', 'depsx', 'a'])
})

test('an entry is told where this cell has it', () => {
  const layers = keptLayers({ layers: [folder('/tmp/cell-7')], workdir: '/tmp/cell-7' }, [])
  expect(Buffer.from(pathInCell({ path: 'workspace/a\xff' }, layers)).toString('latin1')).toBe('/tmp/cell-7/a\xff')
})

test('what does not fit is refused by each limit that it does not fit, with what it needs', () => {
  const snapshot = (needs: StoredSnapshot['needs']): StoredSnapshot => ({
    info: { id: 'sha256:1', template: 'host', createdAt: '', bytes: 0, entries: 0 },
    needs,
    check: () => Promise.resolve(),
    entries: () => (async function* () {})(),
    archive: () => (async function* () {})(),
  })
  const { limits } = parseSpec({ limits: { disk: '1m', inodes: 64, fileSize: '64k' } })
  expect(() => checkRoom(snapshot({ diskBytes: 2 ** 20, entries: 64, largestFileBytes: 65_536 }), limits)).not.toThrow()
  expect(() => checkRoom(snapshot({ diskBytes: 2 ** 20 + 4096, entries: 65, largestFileBytes: 65_537 }), limits)).toThrow(
    expect.objectContaining({
      code: 'invalid',
      message:
        'limits.disk: sha256:1 needs 1052672 bytes, and the limit is 1048576; limits.inodes: sha256:1 has 65 entries, and the limit is 64; limits.fileSize: sha256:1 has a file of 65537 bytes, and the limit is 65536',
    }),
  )
})
