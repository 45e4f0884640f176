import { expect, test } from 'vitest'
import { routes } from '../../src/contract/wire/routes.js'
import { openApi } from '../../src/server/openapi.js'
import { ownServer } from './own-server.js'

interface Document {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>
}

test('the description is what its golden file says', async () => {
  const { paths, ...rest } = openApi('0.0.0') as unknown as Document
  // A line for each path, so that a difference can be read.
  const lines = Object.entries(paths).map((each) => JSON.stringify(each))
  await expect(`${JSON.stringify(rest)}\n${lines.join('\n')}\n`).toMatchFileSnapshot('golden/openapi.txt')
})

test('it is served, and has every route and no other', async () => {
  await using own = await ownServer()
  const document = (await own.ask('/v1/openapi.json', { key: await own.key('red', 'read') })).json() as unknown as Document
  expect(document.openapi).toBe('3.1.0')
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path).map(({ operationId }) => operationId))
  expect(new Set(operations.map((id) => id.split('.').slice(0, 2).join('.')))).toEqual(new Set(Object.keys(routes)))
})
