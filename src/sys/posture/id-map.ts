/** Rows of `[inside, outside, count]`, told from /proc/PID/uid_map or gid_map. */
export type IdMap = readonly (readonly [inside: number, outside: number, count: number])[]

export function parseIdMap(text: string): IdMap {
  return text.split('\n').flatMap((line) => {
    const [inside, outside, count] = line.trim().split(/\s+/).map(Number)
    return inside === undefined || outside === undefined || count === undefined ? [] : [[inside, outside, count] as const]
  })
}

/** What an id of ours is called on the other side of the map; undefined where it has no name there. */
export function insideOf(outside: number, map: IdMap): number | undefined {
  const row = map.find(([, first, count]) => outside >= first && outside < first + count)
  return row && outside - row[1] + row[0]
}
