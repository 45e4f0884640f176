// The notebooks of the kernels, in a real cell, through the engine: what they give there is what they give over pipes.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Platform } from '../../src/contract/platform.js'
import type { Executed } from '../runtimes/python/kernel.js'
import { type Entry, lackOf, notebook, presenceSource, problemsOf } from '../runtimes/python/notebook.js'
import { buildTimeoutMs, dataTemplate } from '../templates/data.js'
import { executeInCell } from './code-in-cell.js'

let platform: Platform
let id: string
let why: string | undefined
let present: readonly string[] = []

beforeAll(async () => {
  platform = createPlatform()
  const [probe] = await platform.probe()
  const data = await dataTemplate()
  why = probe?.available === true ? data.why : `no cell can be built here: ${probe?.obstacles[0]?.why ?? 'there is no driver'}`
  if (why !== undefined) return
  // What is stated must be enforced; where it is not, there is no limit in the way either.
  const limits = {
    time: '10m',
    processes: 200,
    ...(probe?.limits.memory.enforced === true && { memory: '2g' }),
    ...(probe?.limits.cpus.enforced === true && { cpus: 2 }),
  }
  const info = await platform.create({ template: 'data', limits, lifetime: '1h' })
  id = info.id
  const context = await platform.code.createContext(id)
  const found = await execute({ name: 'presence', source: presenceSource }, context.id)
  present = found.results[0]?.data['application/json'] as string[]
  await platform.code.removeContext(id, context.id)
}, buildTimeoutMs)
afterAll(() => platform[Symbol.asyncDispose]())

/** As the harness over pipes tells it. */
async function execute({ source, given = {} }: Pick<Entry, 'source' | 'given' | 'name'>, context?: string): Promise<Executed> {
  const { answers, env } = given
  return executeInCell(platform, id, { code: source, answers, ...(env && { env }), ...(context !== undefined && { context }) })
}

describe('the notebook of Python, in a cell with the template data', () => {
  for (const entry of notebook) {
    test(entry.name, { timeout: 180_000 }, async ({ skip }) => {
      if (why !== undefined) skip(why)
      if (entry.given?.options !== undefined) skip('the engine sets the options of an execution itself')
      const lack = lackOf(entry, present)
      if (lack !== undefined) skip(lack)
      expect(problemsOf(entry, await execute(entry))).toEqual([])
    })
  }

  test('has at least forty executions, with every kind of chart', () => {
    const kinds = notebook.flatMap(({ results = [] }) => results.flatMap(({ chart }) => (chart ? [chart.type] : [])))
    expect(notebook.length).toBeGreaterThan(40)
    expect([...new Set(kinds)]).toEqual(expect.arrayContaining(['line', 'scatter', 'bar', 'pie', 'box', 'subplots']))
  })
})
