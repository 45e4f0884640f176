/** An absolute path without `.`, `..`, doubled and closing slashes. Links are not followed: whoever opens it resolves them, and asks again. */
export function normalPath(path: string): string {
  const parts: string[] = []
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue
    if (part === '..') parts.pop()
    else parts.push(part)
  }
  return `/${parts.join('/')}`
}

/** Whether a path is a folder or somewhere beneath it. */
export function isWithin(path: string, folder: string): boolean {
  const [inner, outer] = [normalPath(path), normalPath(folder)]
  return outer === '/' || inner === outer || inner.startsWith(`${outer}/`)
}
