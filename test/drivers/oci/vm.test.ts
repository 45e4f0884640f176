import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { programPath, readIdFacts } from '../../../src/cell/facts.js'
import { canMapRanges } from '../../../src/cell/judgement.js'
import type { Obstacle } from '../../../src/contract/driver.js'
import { createVmDriver, type VmRuntimeName } from '../../../src/drivers/oci/vm-driver.js'
import { trialPrefix } from '../../../src/drivers/oci/container-trial.js'
import { argumentsOf, findProcesses } from '../../../src/sys/processes.js'
import { testUnless } from '../../unless.js'

const lacking = !canMapRanges(readIdFacts()) && 'a virtual machine is tried as root alone'
let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-vm-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A runtime that tells its version, and does as the script says when it is to run something. */
function pretend(name: string, run: string): () => string {
  const path = join(folder, name)
  writeFileSync(path, `#!/bin/sh\ncase "$*" in\n--version) echo "$0 1.2.3";;\n*" run "*) ${run};;\nesac\n`)
  chmodSync(path, 0o755)
  return () => path
}

async function obstaclesOf(name: VmRuntimeName, path: () => string | undefined, trialMs = 5000): Promise<readonly Obstacle[]> {
  const probe = await createVmDriver(name, { path, trialMs }).probe()
  expect(probe).toMatchObject({ driver: `oci:${name}`, tier: 'vm', available: false, isolates: true })
  return probe.obstacles
}

const instead = 'glovebox run --min-tier gvisor -- true'

describe('a runtime of virtual machines', () => {
  test('that is not installed is named, with what can be had instead', async () => {
    expect(await obstaclesOf('krun', () => undefined)).toEqual([
      { what: 'no krun', why: 'the program krun is not installed; nor are cells opened in virtual machines yet', hint: instead },
    ])
    expect(await obstaclesOf('kata', () => undefined)).toEqual([
      { what: 'no kata', why: 'the program kata-runtime is not installed; nor are cells opened in virtual machines yet', hint: instead },
    ])
  })

  testUnless(lacking)('that hangs is given up in its time, and nothing of it is left', async () => {
    const startedAt = performance.now()
    expect(await obstaclesOf('krun', pretend('hanging', 'sh -c "while :; do sleep 1; done" "$*" & wait'), 500)).toEqual([
      { what: 'a virtual machine did not start', why: 'krun: no answer within 500 ms', hint: instead },
    ])
    expect(performance.now() - startedAt).toBeLessThan(5000)
    expect(findProcesses((pid) => argumentsOf(pid)[0] === 'sh' && argumentsOf(pid).some((word) => word.includes(trialPrefix)))).toEqual([])
  })

  testUnless(lacking)('that fails is told in its own words, and of kata what is known besides', async () => {
    expect(await obstaclesOf('krun', pretend('failing', 'echo "could not load libkrun.so.1" >&2; exit 1'))).toMatchObject([
      { why: 'krun: could not load libkrun.so.1' },
    ])
    expect(await obstaclesOf('kata', pretend('without-run', `echo 'Invalid command "run"' >&2; exit 1`))).toMatchObject([
      { why: 'kata-runtime: Invalid command "run" (since version 2 it starts no container by itself, but only for containerd)' },
    ])
  })

  const noRunc = programPath('runc') === undefined && 'runc is not installed'
  testUnless(lacking || noRunc)('whose containers run on the kernel of this machine is none', async () => {
    expect(await obstaclesOf('krun', pretend('plain', `shift 3; exec ${programPath('runc')} --root "${folder}/state" "$@"`))).toEqual([
      { what: 'no virtual machine', why: 'what krun starts runs on the kernel of this machine', hint: instead },
    ])
  })

  testUnless(lacking)('that starts something which does not tell its kernel is none either', async () => {
    expect(await obstaclesOf('krun', pretend('silent', 'true'))).toMatchObject([{ what: 'a virtual machine did not start', why: 'krun: it printed ""' }])
  })

  testUnless(lacking)('that has another kernel is still not driven, and opens nothing', async () => {
    const path = pretend('another', 'echo 01234567-89ab-cdef-0123-456789abcdef')
    expect(await obstaclesOf('krun', path)).toMatchObject([{ what: 'not driven' }])
    await expect(createVmDriver('krun', { path }).open({} as never, AbortSignal.timeout(1000))).rejects.toMatchObject({ code: 'unavailable' })
  })
})
