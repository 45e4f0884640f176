import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { faultPoints } from '../../src/contract/faults.js'
import { scenarios } from './fault-scenarios.js'

const source = fileURLToPath(new URL('../../src', import.meta.url))

function pointsInSource(): string[] {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  return files.flatMap((name) => [...readFileSync(join(source, name), 'utf8').matchAll(/faults\?\.\('([^']+)'\)/g)].map(([, point = '']) => point))
}

test('every step of the code is in the table once, every step of the table is in the code, and each is tried', () => {
  expect(pointsInSource().sort()).toEqual([...faultPoints].sort())
  expect(Object.keys(scenarios).sort()).toEqual([...faultPoints].sort())
})
