import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FileCalls, FilePath, OpenFile } from '../../../src/contract/files.js'
import type { Platform } from '../../../src/contract/platform.js'
import type { Mutant } from './table.js'
import { lyingEngine } from './twists.js'

/** An engine that lies about files and nothing else. */
function lyingFiles(lie: (honest: FileCalls) => Partial<FileCalls>): (platform: Platform) => Platform {
  return (platform) => ({ ...lyingEngine({})(platform), files: { of: (id) => withLie(platform.files.of(id), lie) } })
}

function withLie(honest: FileCalls, lie: (honest: FileCalls) => Partial<FileCalls>): FileCalls {
  return {
    read: (path, options) => honest.read(path, options),
    write: (path, content, options) => honest.write(path, content, options),
    list: (path, options) => honest.list(path, options),
    stat: (path, options) => honest.stat(path, options),
    mkdir: (path, options) => honest.mkdir(path, options),
    move: (from, to, options) => honest.move(from, to, options),
    copy: (from, to, options) => honest.copy(from, to, options),
    remove: (path, options) => honest.remove(path, options),
    symlink: (target, path, options) => honest.symlink(target, path, options),
    chmod: (path, mode, options) => honest.chmod(path, mode, options),
    watch: (path, options) => honest.watch(path, options),
    search: (path, pattern, options) => honest.search(path, pattern, options),
    pack: (path, options) => honest.pack(path, options),
    unpack: (path, archive, options) => honest.unpack(path, archive, options),
    ...lie(honest),
  }
}

/** Resolves the first link of the path itself, and reads what the host has there. */
async function readOnHost(honest: FileCalls, path: FilePath, options: Parameters<FileCalls['read']>[1]): Promise<OpenFile> {
  const [first = '', ...rest] = typeof path === 'string' ? path.split('/') : []
  const target = first === '' || rest.length === 0 ? undefined : (await honest.stat(first))?.target
  const bytes = target === undefined ? undefined : await readFile(join('/', target, ...rest)).catch(() => undefined)
  const entry = bytes && (await honest.stat(first))
  if (!bytes || !entry) return honest.read(path, options)
  return { entry, bytes: onePiece(bytes) }
}

async function* onePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array, undefined, undefined> {
  yield await Promise.resolve(bytes)
  return undefined
}

export const fileMutants: readonly Mutant[] = [
  {
    name: 'reads what a link leads to on the host',
    driver: 'bwrap',
    depth: 'engine',
    twist: { platform: lyingFiles((honest) => ({ read: (path, options) => readOnHost(honest, path, options) })) },
    among: 'files/',
    caughtBy: ['files/links-out', 'files/swapped-links'],
  },
  {
    name: 'takes an archive that leads out for a good one',
    driver: 'bwrap',
    depth: 'engine',
    twist: { platform: lyingFiles((honest) => ({ unpack: (path, archive, options) => honest.unpack(path, archive, options).catch(() => 0) })) },
    among: 'files/',
    caughtBy: ['files/hostile-archives', 'files/owners'],
  },
  {
    name: 'says that there was room for what there was none',
    driver: 'bwrap',
    depth: 'engine',
    twist: {
      platform: lyingFiles((honest) => ({
        write: async (path, content, options) => {
          try {
            return await honest.write(path, content, options)
          } catch (error) {
            const there = (error as { code?: string }).code === 'full' ? await honest.stat(path) : null
            if (there) return there
            throw error
          }
        },
      })),
    },
    among: 'files/',
    caughtBy: ['files/full-disk'],
  },
]
