import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Kernel } from './kernel.js'
import { lackOf, notebook, presenceSource, problemsOf } from './notebook.js'

describe('the notebook, over pipes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-notebook-'))
  let kernel: Kernel
  let present: readonly string[]
  // A folder with packages that the interpreter has not may be given.
  const env = { PATH: '/usr/bin:/bin', HOME: folder, LANG: 'C.UTF-8', PYTHONPATH: process.env['GLOVEBOX_TEST_PYTHONPATH'] ?? '' }

  beforeAll(async () => {
    await using first = await Kernel.start({ env })
    const found = await first.execute(presenceSource)
    present = found.results[0]?.data['application/json'] as string[]
    kernel = await Kernel.start({ cwd: folder, env })
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

  test('leaves no files but those of the code', () => {
    expect(readdirSync(folder).sort()).toEqual(['__pycache__', 'helper.py'])
  })

  test('there are enough of them', () => {
    expect(notebook.length).toBeGreaterThan(100)
  })
})
