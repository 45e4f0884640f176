import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readPolicyText } from '../../src/sys/policy-text.js'
import { startScript } from './run-script.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-policy-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

describe('the file of a policy', () => {
  test('is read whole up to a mebibyte, and refused above', () => {
    const path = join(folder, 'policy.json')
    writeFileSync(path, ' '.repeat(2 ** 20))
    expect(readPolicyText(path)).toHaveLength(2 ** 20)
    writeFileSync(path, ' '.repeat(2 ** 20 + 1))
    expect(() => readPolicyText(path)).toThrow(`${path}: cannot be read as a policy: it is larger than 1 MiB`)
  })

  test('is never waited for: a pipe with a name is refused, as are folders and devices', () => {
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    expect(() => readPolicyText(pipe)).toThrow(`${pipe}: cannot be read as a policy: it is a pipe with a name`)
    expect(() => readPolicyText(folder)).toThrow(`${folder}: cannot be read as a policy: it is a folder`)
    expect(() => readPolicyText('/dev/zero')).toThrow('/dev/zero: cannot be read as a policy: it is no file')
  })

  test('may be what a command prints, also when that takes a while', async () => {
    const wrapper = ['bash', '-c', 'exec "$@" 3< <(sleep 0.3; echo "{}")', 'bash']
    const { ended } = await startScript(new URL('./programs/read-policy.ts', import.meta.url), ['/dev/fd/3'], wrapper)
    expect(await ended).toEqual({ stdout: '{}\n', stderr: '', code: 0, signal: null })
  })
})
