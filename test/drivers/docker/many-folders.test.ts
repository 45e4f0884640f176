import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDockerDriver } from '../../../src/drivers/docker/driver.js'
import type { CellSpec } from '../../../src/contract/driver.js'
import { type DockerEngine, noDockerEngine, startDockerEngine } from '../../docker-engine.js'
import { skipGroup } from '../../unless.js'
import { specOf } from '../bwrap/open-guest.js'

const impossible = noDockerEngine()
let engine: DockerEngine

beforeAll(async () => {
  if (impossible === undefined) engine = await startDockerEngine()
})
afterAll(async () => {
  await engine?.[Symbol.asyncDispose]()
})

async function withFolders(source: string, count: number): Promise<CellSpec> {
  const spec = await specOf()
  const names = Array.from({ length: count }, (_, index) => `folder${index}`)
  for (const name of names) mkdirSync(join(source, name))
  return { ...spec, root: { ...spec.root, binds: [...spec.root.binds, ...names.map((name) => ({ source: join(source, name), target: `/${name}` }))] } }
}

describe('a template with a hundred folders at its top', () => {
  skipGroup(impossible ?? false)

  test('is a cell like any other', async () => {
    const source = mkdtempSync(join(tmpdir(), 'gbx-folders-'))
    try {
      const cell = await createDockerDriver({ address: engine.address }).open(await withFolders(source, 100), AbortSignal.timeout(20_000))
      const [posture] = await cell.posture({ kind: 'cell' })
      const isMounts = ({ control }: { readonly control: string }): boolean => control === 'mounts'
      expect(posture?.observations.find(isMounts)?.value).toEqual(cell.expects.find(isMounts)?.value)
      await cell.close()
    } finally {
      rmSync(source, { recursive: true })
    }
  })

  test('that has more than fits is refused by its name', async () => {
    const source = mkdtempSync(join(tmpdir(), 'gbx-folders-'))
    try {
      const opening = createDockerDriver({ address: engine.address }).open(await withFolders(source, 300), AbortSignal.timeout(20_000))
      await expect(opening).rejects.toMatchObject({ code: 'unsupported', message: expect.stringMatching(/^template host has 3\d\d folders/) as string })
    } finally {
      rmSync(source, { recursive: true })
    }
  })
})
