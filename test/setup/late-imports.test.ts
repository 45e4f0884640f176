import { describe, expect, it } from 'vitest'

interface LateImports {
  readonly lateHelpers: string
  readonly withLateImports: (text: string) => Promise<string>
}

const { lateHelpers, withLateImports } = (await import(new URL('../../scripts/late-imports.mjs', import.meta.url).href)) as LateImports

/** What a module of that text exports, and what it had asked for by then and by the end. */
async function load(text: string, others: Readonly<Record<string, unknown>>) {
  const asked: string[] = []
  const module = { exports: {} as Record<string, () => unknown> }
  const require = (name: string): unknown => {
    asked.push(name)
    return others[name]
  }
  new Function('module', 'require', `${lateHelpers}${await withLateImports(text)}`)(module, require)
  return { module: module.exports, asked }
}

describe('a module of the program', () => {
  it('asks for another when something of it is used, and once', async () => {
    const text = `import { one, Kind } from './one.js'\nimport * as z from 'zod'\nexport const all = () => [one(), new Kind('a').name, z.two]\n`
    const others = {
      './one.js': {
        one: () => 1,
        Kind: class {
          constructor(readonly name: string) {}
        },
      },
      zod: { two: 2 },
    }
    const { module, asked } = await load(text, others)
    expect(asked).toEqual([])
    expect([module.all?.(), module.all?.()]).toEqual([
      [1, 'a', 2],
      [1, 'a', 2],
    ])
    expect(asked).toEqual(['./one.js', 'zod'])
  })

  it('asks at once for what it imports for its effect, and hands on what others have', async () => {
    const { module, asked } = await load(`import './act.js'\nexport { one as first } from './one.js'\n`, { './act.js': {}, './one.js': { one: () => 1 } })
    expect(asked).toEqual(['./act.js'])
    expect(module.first?.()).toBe(1)
  })

  it('finds a default export, and modules that it imports while it runs', async () => {
    const text = `import colours from 'colours'\nexport const red = () => colours.red\nexport const later = async () => (await import('./one.js')).one()\n`
    const { module } = await load(text, { colours: { red: 'r' }, './one.js': { one: () => 1 } })
    expect([module.red?.(), await module.later?.()]).toEqual(['r', 1])
  })
})
