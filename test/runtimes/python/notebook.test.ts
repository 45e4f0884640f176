import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Kernel } from './kernel.js'
import { lackOf, notebook, presenceSource, problemsOf } from './notebook.js'

describe('the notebook, over pipes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-notebook-'))
  let kernel: Kernel
  let present: readonly string[]

  beforeAll(async () => {
    await using first = await Kernel.start()
    const found = await first.execute(presenceSource)
    present = found.results[0]?.data['application/json'] as string[]
    kernel = await Kernel.start({ cwd: folder })
  }, 120_000)

  afterAll(async () => {
    await kernel[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true })
  })

  for (const entry of notebook) {
    test(entry.name, { timeout: 180_000 }, async (context) => {
      const lack = lackOf(entry, present)
      if (lack) context.skip(lack)
      expect(problemsOf(entry, await kernel.execute(entry.source, entry.given))).toEqual([])
    })
  }

  test('there are enough of them', () => {
    expect(notebook.length).toBeGreaterThan(100)
  })
})
