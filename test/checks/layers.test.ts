import { describe, expect, it } from 'vitest'
import { problemsOf, verdictOf } from './fixture.js'

const allowed = {
  'src/contract/spec.ts': "import { z } from 'zod'\nexport const spec = z.string()\n",
  'src/policy/choose.ts': "import type { spec } from '../contract/spec.js'\nexport type Spec = typeof spec\n",
  'src/drivers/bwrap/driver.ts': "import { open } from './open.js'\nexport { open }\n",
  'src/drivers/bwrap/open.ts': "import { run } from '../../sys/run.js'\nexport const open = run\n",
  'src/sys/run.ts': "import { spawn } from 'node:child_process'\nexport const run = spawn\n",
}

const check = { script: 'scripts/checks/layers.mjs', name: 'layerProblems' }

describe('the layer check', () => {
  it('passes what the table allows', async () => {
    expect(await problemsOf(check, allowed)).toEqual([])
  })

  it.each([
    ['a room nobody knows', { 'src/kitchen/oven.ts': 'export {}\n' }, 'src/kitchen/oven.ts: is in no room of scripts/checks/rooms.mjs'],
    ['a file beside the rooms', { 'src/stray.ts': 'export {}\n' }, 'src/stray.ts: is in no room of scripts/checks/rooms.mjs'],
    ['a name that says nothing', { 'src/sys/utils.ts': 'export {}\n' }, "src/sys/utils.ts: 'utils.ts' says nothing about what is inside"],
    ['a folder that says nothing', { 'src/shared/a.ts': 'export {}\n' }, "src/shared/a.ts: 'shared' says nothing about what is inside"],
    ['an import against the table', { 'src/policy/a.ts': "import '../sys/run.js'\n" }, 'src/policy/a.ts: room policy may not import room sys (../sys/run.js)'],
    [
      'a type import against the table',
      { 'src/contract/a.ts': "export type { A } from '../policy/choose.js'\n" },
      'src/contract/a.ts: room contract may not import room policy (../policy/choose.js)',
    ],
    [
      'a lazy import against the table',
      { 'src/server/a.ts': "export const load = () => import('../engine/engine.js')\n" },
      'src/server/a.ts: room server may not import room engine (../engine/engine.js)',
    ],
    [
      'one driver in another',
      { 'src/drivers/oci/a.ts': "import '../bwrap/driver.js'\n" },
      'src/drivers/oci/a.ts: room drivers/oci may not import room drivers/bwrap (../bwrap/driver.js)',
    ],
    ['a package where it is not allowed', { 'src/engine/a.ts': "import 'zod'\n" }, 'src/engine/a.ts: room engine may not import the package zod'],
    ['a scoped package', { 'src/contract/a.ts': "import '@scope/name/sub'\n" }, 'src/contract/a.ts: room contract may not import the package @scope/name'],
    ['a process started outside sys', { 'src/engine/a.ts': "import 'node:child_process'\n" }, 'src/engine/a.ts: room engine may not import node:child_process'],
    ['a Node module without its prefix', { 'src/sys/a.ts': "import 'fs'\n" }, "src/sys/a.ts: imports 'fs'; write 'node:fs'"],
    ['a way out of src', { 'src/cli/a.ts': "import '../../bench/run.js'\n" }, 'src/cli/a.ts: imports ../../bench/run.js, which is outside src'],
  ])('catches %s', async (_what, planted, problem) => {
    expect(await problemsOf(check, { ...allowed, ...planted })).toEqual([problem])
  })

  it('ends with 1 and a line for each problem when it is run', () => {
    expect(verdictOf(check, allowed)).toEqual({ code: 0, output: '' })
    expect(verdictOf(check, { ...allowed, 'src/stray.ts': 'export {}\n' })).toEqual({
      code: 1,
      output: 'src/stray.ts: is in no room of scripts/checks/rooms.mjs\n',
    })
  })
})
