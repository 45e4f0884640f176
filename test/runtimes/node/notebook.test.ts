// The notebook of JavaScript and TypeScript, over pipes.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Kernel } from '../kernel.js'
import { check, files, steps } from './notebook.js'

const folder = mkdtempSync(join(tmpdir(), 'glovebox-notebook-'))
let kernel: Kernel

beforeAll(async () => {
  mkdirSync(join(folder, 'node_modules/packaged'), { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  kernel = await Kernel.start('node', { cwd: folder })
})

afterAll(async () => {
  expect(await kernel.close()).toBe(0)
  rmSync(folder, { recursive: true })
})

test.each(steps.map((step, index) => [index + 1, step] as const))('execution %i comes to what it must', async (number, step) => {
  const executed = await kernel.execute(step.source, step.language === undefined ? {} : { language: step.language })
  expect(executed.number).toBe(number)
  check(step, executed)
})
