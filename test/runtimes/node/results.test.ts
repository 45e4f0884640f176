// What a value becomes as a MIME bundle, and that it is bounded.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Kernel, type Result } from '../kernel.js'

let kernel: Kernel
beforeAll(async () => {
  kernel = await Kernel.start('node')
})
afterAll(async () => {
  await kernel[Symbol.asyncDispose]()
})

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

async function only(source: string, options?: Record<string, string>): Promise<Result> {
  const { results, status, error } = await kernel.execute(source, options ? { options } : {})
  expect(error).toBeUndefined()
  expect(status).toBe('ok')
  expect(results).toHaveLength(1)
  return results[0] as Result
}

test('values that say how they look are shown so', async () => {
  const forms = '{ "text/html": "<b>hi</b>", "text/plain": "hi", "application/json": { a: [1] } }'
  expect(await only(`({ [Symbol.for("glovebox.display")]() { return ${forms} } })`)).toEqual({
    isMain: true,
    data: { 'text/plain': 'hi', 'text/html': '<b>hi</b>', 'application/json': { a: [1] } },
    cut: [],
  })
  const { data } = await only('({ _repr_html_: () => "<i>", _repr_svg_: () => "<svg/>", _repr_markdown_: () => "# m", _repr_latex_: () => "$x$" })')
  expect(data).toMatchObject({ 'text/html': '<i>', 'image/svg+xml': '<svg/>', 'text/markdown': '# m', 'text/latex': '$x$' })
})

test('bytes are known by how they begin', async () => {
  expect((await only(`Buffer.from("${png}", "base64")`)).data['image/png']).toBe(png)
  expect((await only(`new Uint8Array(Buffer.from("${png}", "base64"))`)).data['image/png']).toBe(png)
  expect((await only('Buffer.from([0xff, 0xd8, 0xff, 0xe0])')).data['image/jpeg']).toBe('/9j/4A==')
  expect((await only('Buffer.from("%PDF-1.7")')).data['application/pdf']).toBe(Buffer.from('%PDF-1.7').toString('base64'))
  expect(Object.keys((await only('Buffer.from("plain")')).data)).toEqual(['text/plain'])
})

test('display shows on the way, in order with what is printed', async () => {
  const source = 'console.log("a"); display("<p>", { mime: "text/html" }); console.log("b"); display({ x: 1 }); display.markdown("# t"); console.error("c"); 5'
  const { results, order } = await kernel.execute(source)
  expect(results.map(({ isMain, data }) => [isMain, Object.keys(data).at(-1)])).toEqual([
    [false, 'text/html'],
    [false, 'application/json'],
    [false, 'text/markdown'],
    [true, 'text/plain'],
  ])
  expect(order).toEqual(['stdout a\n', 'result', 'stdout b\n', 'result', 'result', 'stderr c\n', 'result'])
})

test('specifications of Vega-Lite are told as such', async () => {
  const source = '({ $schema: "https://vega.github.io/schema/vega-lite/v5.json", mark: "bar" })'
  expect((await only(source)).data).toHaveProperty('application/vnd.vegalite.v5+json')
})

test('text is shortened at a character, and everything else left out', async () => {
  const long = await only('"ä😀".repeat(1000)', { 'result-bytes': '1000' })
  expect(long.cut).toEqual(['text/plain'])
  const text = long.data['text/plain'] as string
  expect(Buffer.byteLength(JSON.stringify({ 'text/plain': text }))).toBeLessThanOrEqual(1000)
  expect(text.length).toBeGreaterThan(300)
  expect(Buffer.from(text).toString()).toBe(text)
  const image = await only('const page = Buffer.alloc(5000); page.write("%PDF-1.7"); page', { 'result-bytes': '1000' })
  expect([Object.keys(image.data), image.cut]).toEqual([['text/plain'], ['application/pdf']])
  const json = await only('Array.from({ length: 1000 }, (_, index) => index)', { 'result-bytes': '1000' })
  expect(json.cut).toContain('application/json')
})

test('what is far too large is cut', async () => {
  const large = await only('"x".repeat(2 ** 28)')
  expect(large.cut).toEqual(['text/plain'])
  expect((large.data['text/plain'] as string).length).toBeLessThanOrEqual(10_485_760)
  const wide = await only('const wide = {}; for (let n = 0; n < 500_000; n++) wide[`key${n}`] = "v".repeat(40); wide')
  expect(wide.cut).toEqual(['text/plain', 'application/json'])
  const many = await only('new Array(2 ** 32 - 1)')
  expect(many.data['text/plain']).toBe('[ <4294967295 empty items> ]')
  expect((await only('Buffer.alloc(2 ** 30)')).data['text/plain']).toContain('more bytes')
}, 120_000)

test.each([
  ['a getter that throws', '({ get a() { throw 1 } })', '{ a: [Getter] }'],
  ['a toJSON that throws', '({ toJSON() { throw 1 } })', '{ toJSON: [Function: toJSON] }'],
  ['an inspection that throws', '({ [Symbol.for("nodejs.util.inspect.custom")]() { throw new Error("no") } })', '[object that cannot be shown: Error: no]'],
  ['a display that throws', '({ [Symbol.for("glovebox.display")]() { throw 1 } })', '{ [Symbol(glovebox.display)]: [Function: [glovebox.display]] }'],
  ['a proxy whose traps throw', 'new Proxy({ a: 1 }, { get() { throw 1 }, ownKeys() { throw 2 }, getPrototypeOf() { throw 3 } })', '{ a: 1 }'],
  ['a revoked proxy', 'const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); proxy', '<Revoked Proxy>'],
  ['a bigint inside', '({ big: 10n })', '{ big: 10n }'],
])('%s has a text', async (_, source, text) => {
  const { data } = await only(source)
  expect(data['text/plain']).toBe(text)
})

test('the place of an error is that of the source, the traceback the user’s, and the full one kept', async () => {
  const { error } = await kernel.execute('const parse = (text) => {\n  return JSON.parse(text)\n}\n\n    parse("{")')
  expect(error).toMatchObject({ name: 'SyntaxError', line: 2, column: 15 })
  const name = /code-\d+\.js/.exec(error?.traceback ?? '')?.[0] ?? ''
  expect(error?.traceback.split('\n')).toEqual([
    `${name}:2`,
    '  return JSON.parse(text)',
    '              ^',
    '',
    `SyntaxError: ${error?.value}`,
    `    at parse (${name}:2:15)`,
    `    at ${name}:5:5`,
  ])
  expect(error?.full).toContain('at JSON.parse (<anonymous>)')
  const caused = await kernel.execute('throw new Error("outer", { cause: new TypeError("inner") })')
  expect(caused.error?.full).toContain('TypeError: inner')
})
