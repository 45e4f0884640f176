// The notebook of the shell, over pipes.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Kernel } from '../kernel.js'
import { check, stepsIn } from './notebook.js'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'glovebox-shell-')))
let kernel: Kernel

beforeAll(async () => {
  kernel = await Kernel.start('shell', { cwd: folder })
})
afterAll(async () => {
  expect(await kernel.close()).toBe(0)
  rmSync(folder, { recursive: true })
})

test.each(stepsIn(folder).map((step, index) => [index + 1, step] as const))('execution %i comes to what it must', async (number, step) => {
  const executed = await kernel.execute(step.source)
  expect(executed.number).toBe(number)
  check(step, executed)
})
