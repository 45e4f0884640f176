import { describe, expect, test } from 'vitest'
import { startScript } from '../sys/run-script.js'

const asNobody = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', 'env', 'HOME=/tmp']
const isRoot = process.getuid?.() === 0

async function results(wrapper: readonly string[]): Promise<Record<string, string>> {
  const { ended } = await startScript(new URL('programs/files-limits.ts', import.meta.url), [], wrapper)
  const { stdout, stderr, code } = await ended
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
  return JSON.parse(stdout) as Record<string, string>
}

const common = {
  fileSize: expect.stringMatching(/^full: files\.write \/workspace\/a: no file may be that large \(limits\.fileSize is [^)]+\) \| done 1$/),
  kinds: 'conflict: files.read /workspace/sock: it is no file (is a socket)',
  growing: 'whole lines',
  round: 'text user d,e',
}

describe('files of a walled sandbox', () => {
  test.skipIf(!isRoot)('tell which limit they met, and go on', { timeout: 120_000 }, async () => {
    expect(await results([])).toMatchObject({
      ...common,
      processes: 'busy: files.watch /workspace: the file worker found no room for another process (limits.processes is 8) | watches',
      memory: expect.stringMatching(
        /^conflict: files\.write \/workspace\/a: the file worker was ended for want of memory \(limits\.memory is [^)]+\) \| done true$/,
      ),
    })
  })

  test('are the same for an ordinary user, with one id', { timeout: 120_000 }, async () => {
    expect(await results(isRoot ? asNobody : [])).toMatchObject(common)
  })
})
