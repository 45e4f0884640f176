import type { Page } from '../contract/tenants.js'
import { HttpError } from './http-error.js'

const usualPage = 100

interface Asked {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** A part of a list, in the order of its keys; the cursor is the key that the part before ended with, so that what comes and goes meanwhile moves nothing. */
export function pageOf<Item>(items: readonly Item[], { limit = usualPage, cursor }: Asked, keyOf: (item: Item, index: number) => string): Page<Item> {
  const after = cursor === undefined ? undefined : decodeCursor(cursor)
  const keyed = items.map((item, index) => ({ item, key: keyOf(item, index) })).sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0))
  const rest = after === undefined ? keyed : keyed.filter(({ key }) => key > after)
  const found = rest.slice(0, limit)
  const last = found.at(-1)
  return { items: found.map(({ item }) => item), ...(last && rest.length > limit && { next: Buffer.from(last.key).toString('base64url') }) }
}

/** The same of a list that may be long: no more of it is held than a page needs. */
export async function pageOfStream<Item>(items: AsyncIterable<Item>, { limit = usualPage, cursor }: Asked, keyOf: (item: Item) => string): Promise<Page<Item>> {
  const after = cursor === undefined ? undefined : decodeCursor(cursor)
  let kept: { readonly item: Item; readonly key: string }[] = []
  const sift = (): void => void (kept = kept.sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0)).slice(0, limit + 1))
  for await (const item of items) {
    const key = keyOf(item)
    if (after !== undefined && key <= after) continue
    if (kept.push({ item, key }) > 2 * limit + 1000) sift()
  }
  sift()
  return pageOf(
    kept.map(({ item }) => item),
    { limit },
    (item) => keyOf(item),
  )
}

function decodeCursor(cursor: string): string {
  const key = Buffer.from(cursor, 'base64url').toString()
  if (Buffer.from(key).toString('base64url') !== cursor) throw new HttpError(400, "cursor: must be a page's `next`")
  return key
}

/** Numbers as text that is in the same order. */
export function inOrder(number: number): string {
  return String(number).padStart(16, '0')
}
