import { createHash } from 'node:crypto'
import type { FileCalls, FilePath, PlatformFiles } from '../contract/files.js'
import type { Acts } from './acts.js'
import { shownValue } from './shown.js'

/** What is written is known by its hash; what is read leaves no record. */
export function auditedFiles(files: PlatformFiles, acts: Acts): PlatformFiles {
  return { of: (id) => auditedCalls(files.of(id), { acts, sandbox: id }) }
}

function auditedCalls(calls: FileCalls, { acts, sandbox }: { readonly acts: Acts; readonly sandbox: string }): FileCalls {
  const facts = (details: Readonly<Record<string, unknown>>) => ({ sandbox, details: shownValue(details) as Record<string, never> })
  return {
    read: (path, options) => acts.seeing(() => calls.read(path, options)),
    list: (path, options) => acts.following(() => calls.list(path, options)),
    stat: (path, options) => acts.seeing(() => calls.stat(path, options)),
    watch: (path, options) => acts.seeing(() => calls.watch(path, options)),
    search: (path, pattern, options) => acts.seeing(() => calls.search(path, pattern, options)),
    pack: (path, options) => acts.seeing(() => calls.pack(path, options)),
    write: (path, content, options) => {
      const measured = measure(content)
      const details = { path: named(path), append: options?.append ?? false, mode: options?.mode }
      return acts.doing('file.write', facts(details), {
        effect: () => calls.write(path, measured.bytes, options),
        ending: () => ({ details: measured.facts() }),
      })
    },
    unpack: (path, archive, options) => {
      const measured = measure(archive)
      const ending = (entries: number) => ({ details: { entries, ...measured.facts() } })
      return acts.doing('file.unpack', facts({ path: named(path) }), { effect: () => calls.unpack(path, measured.bytes, options), ending })
    },
    mkdir: (path, options) => acts.doing('file.mkdir', facts({ path: named(path) }), { effect: () => calls.mkdir(path, options) }),
    move: (from, to, options) => acts.doing('file.move', facts({ from: named(from), to: named(to) }), { effect: () => calls.move(from, to, options) }),
    copy: (from, to, options) => acts.doing('file.copy', facts({ from: named(from), to: named(to) }), { effect: () => calls.copy(from, to, options) }),
    remove: (path, options) =>
      acts.doing('file.remove', facts({ path: named(path), recursive: options?.recursive ?? false }), { effect: () => calls.remove(path, options) }),
    symlink: (target, path, options) =>
      acts.doing('file.symlink', facts({ path: named(path), target: named(target) }), { effect: () => calls.symlink(target, path, options) }),
    chmod: (path, mode, options) => acts.doing('file.chmod', facts({ path: named(path), mode }), { effect: () => calls.chmod(path, mode, options) }),
  }
}

function named(path: FilePath): string {
  return (typeof path === 'string' ? path : Buffer.from(path).toString('latin1')).slice(0, 4096)
}

/** The same bytes, counted and hashed as they pass. */
function measure(content: AsyncIterable<Uint8Array>) {
  const hash = createHash('sha256')
  let bytes = 0
  return {
    bytes: {
      async *[Symbol.asyncIterator]() {
        for await (const chunk of content) {
          hash.update(chunk)
          bytes += chunk.length
          yield chunk
        }
      },
    },
    facts: () => ({ bytes, sha256: hash.digest('hex') }),
  }
}
