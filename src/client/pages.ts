interface AnyPage<Item> {
  readonly items: readonly Item[]
  readonly next?: string | undefined
}

type Ask = (query: { readonly cursor?: string; readonly limit: number }) => Promise<AnyPage<unknown>>

const perPage = 1000

/** Page after page, as far as it is read. */
export async function* eachOfPages<Item>(ask: Ask): AsyncGenerator<Item, void, undefined> {
  let cursor: string | undefined
  do {
    const { items, next } = await ask({ limit: perPage, ...(cursor !== undefined && { cursor }) })
    yield* items as readonly Item[]
    cursor = next
  } while (cursor !== undefined)
}

export async function allPages<Item>(ask: Ask): Promise<readonly Item[]> {
  const all: Item[] = []
  for await (const item of eachOfPages<Item>(ask)) all.push(item)
  return all
}
