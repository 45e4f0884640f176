import * as z from 'zod'
import type { Page, PageRequest } from '../contract/tenants.js'
import { parseObject } from '../policy/refusal.js'

export interface ParsedPage {
  readonly after: string | undefined
  readonly limit: number
}

/** What a page begins behind is the id of the last item of the one before. */
export function parsePage(page: PageRequest, cursorSchema: z.ZodType<string>): ParsedPage {
  const schema = z.strictObject({ cursor: cursorSchema.optional(), limit: z.int().min(1).max(1000).default(100) })
  const { cursor, limit } = parseObject(schema, page, { what: 'page', objects: [] })
  return { after: cursor, limit }
}

/** Of one item more than a page has, which only tells that there is another page. */
export function pageOf<Item extends { readonly id: string }>(found: readonly Item[], limit: number): Page<Item> {
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return { items, ...(found.length > limit && last && { next: last.id }) }
}
