/** The mount table of a process, told from its /proc/PID/mountinfo. */

export interface MountEntry {
  readonly id: number
  readonly parent: number
  /** The filesystem, as MAJOR:MINOR. */
  readonly device: string
  readonly target: string
  readonly type: string
  /** `ro` when the mount or the whole filesystem is. */
  readonly access: 'ro' | 'rw'
  readonly nosuid: boolean
  readonly nodev: boolean
  readonly noexec: boolean
  /** Of the filesystem, with commas between them. */
  readonly options: string
}

export function parseMountTable(text: string): MountEntry[] {
  return text.split('\n').flatMap((line) => {
    const entry = parseLine(line)
    return entry === undefined ? [] : [entry]
  })
}

/** `36 35 98:0 ROOT TARGET options [tags]… - TYPE SOURCE FILESYSTEM_OPTIONS`; blanks in names are escaped, so the dash stands alone only once. */
function parseLine(line: string): MountEntry | undefined {
  const dash = line.indexOf(' - ')
  if (dash < 0) return undefined
  const [id, parent, device = '', , target = '', flags = ''] = line.slice(0, dash).split(' ')
  const [type = '', , options = ''] = line.slice(dash + 3).split(' ')
  return {
    id: Number(id),
    parent: Number(parent),
    device,
    target: unescape(target),
    type,
    access: has(flags, 'ro') || has(options, 'ro') ? 'ro' : 'rw',
    nosuid: has(flags, 'nosuid'),
    nodev: has(flags, 'nodev'),
    noexec: has(flags, 'noexec'),
    options,
  }
}

/** Every line of every cell is asked five times, so without making lists of them. */
function has(options: string, word: string): boolean {
  return `,${options},`.includes(`,${word},`)
}

/** The kernel writes blanks and backslashes as three octal digits. */
function unescape(path: string): string {
  return path.includes('\\') ? path.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))) : path
}

/**
 * The mounts that a path leads to, sorted by target. A mount upon the root of another covers it with all that is mounted below, and one upon a
 * folder covers what was mounted beneath that folder before. Told from parents alone, because the order of the table differs between kernels.
 */
export function reachableMounts(entries: readonly MountEntry[]): MountEntry[] {
  const ids = new Set(entries.map(({ id }) => id))
  const children = childrenByParent(entries)
  const reached: MountEntry[] = []
  const visit = (entry: MountEntry): void => {
    const below = children.get(entry.id) ?? new Map<string, MountEntry>()
    const cover = below.get(entry.target)
    if (cover) {
      visit(cover)
      return
    }
    reached.push(entry)
    for (const child of below.values()) if (!isCovered(child, below)) visit(child)
  }
  for (const entry of entries) if (!ids.has(entry.parent) || entry.parent === entry.id) visit(entry)
  return reached.sort(byTarget)
}

/** No two mounts of one parent have the same place: the second would be upon the first. */
function childrenByParent(entries: readonly MountEntry[]): Map<number, Map<string, MountEntry>> {
  const children = new Map<number, Map<string, MountEntry>>()
  for (const entry of entries) {
    if (entry.id === entry.parent) continue
    const siblings = children.get(entry.parent) ?? new Map<string, MountEntry>()
    children.set(entry.parent, siblings.set(entry.target, entry))
  }
  return children
}

/** By a sibling upon a folder above; that of the parent itself is none of the siblings. */
function isCovered({ target }: MountEntry, siblings: ReadonlyMap<string, MountEntry>): boolean {
  for (let end = target.lastIndexOf('/'); end > 0; end = target.lastIndexOf('/', end - 1)) if (siblings.has(target.slice(0, end))) return true
  return false
}

function byTarget(one: MountEntry, other: MountEntry): number {
  if (one.target === other.target) return 0
  return one.target < other.target ? -1 : 1
}

/** The mount that holds a path, among mounts that can be reached. */
export function mountOf(path: string, reachable: readonly MountEntry[]): MountEntry | undefined {
  const holds = ({ target }: MountEntry): boolean => target === '/' || target === path || path.startsWith(`${target}/`)
  return reachable.filter(holds).toSorted((one, other) => other.target.length - one.target.length)[0]
}
