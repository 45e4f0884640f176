/** Names as archives tell them, and what of them may become a name on the disk. */
import { refused } from './image-tree.js'

const mostPathBytes = 3072
const mostNameBytes = 255
const mostDepth = 128

export type EntryPath = { readonly path: readonly string[] } | { readonly unusable: string }

/**
 * The parts of a path below the root: a slash in front means the root itself, as everywhere. A path that leads out of the root is refused with all of the archive;
 * one that no program here can name is only left out.
 */
export function entryPath(name: Buffer): EntryPath {
  const text = name.toString('utf8')
  const path = text.split('/').filter((part) => part !== '' && part !== '.')
  if (path.includes('..')) throw refused(`${printed(text)} leads out of it`)
  if (!Buffer.from(text, 'utf8').equals(name)) return { unusable: 'its name is not UTF-8' }
  if (hasControls(text)) return { unusable: 'its name has control characters' }
  if (name.length > mostPathBytes || path.length > mostDepth) return { unusable: 'its path is too long' }
  if (path.some((part) => Buffer.byteLength(part) > mostNameBytes)) return { unusable: 'its name is too long' }
  return { path }
}

/** Where a link leads is the cell's affair; undefined for what no link can say. */
export function linkTarget(target: Buffer): string | undefined {
  const text = target.toString('utf8')
  const isText = Buffer.from(text, 'utf8').equals(target) && !hasControls(text)
  return isText && text !== '' && target.length <= mostPathBytes ? text : undefined
}

/** For a line of ours. */
export function printed(text: string): string {
  return JSON.stringify(text.slice(0, 300))
    .slice(1, -1)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD')
}

function hasControls(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return /[\u0000-\u001f\u007f-\u009f]/.test(text)
}
