import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { FilterPipe, type InspectorPipe } from '../../../src/sys/posture/filter-pipe.js'
import { nativeProgram } from '../../../src/sys/native.js'
import { type SpawnedProcess, spawnProcess } from '../../../src/sys/spawn.js'

/** Reads what it is told from descriptor 3 to the end, then answers there. */
async function inspector(answer: string): Promise<{ readonly process: SpawnedProcess; readonly pipe: InspectorPipe }> {
  const process = await spawnProcess(['/bin/sh', '-c', `pid=$(cat <&3); ${answer}`], { cwd: '/', env: {}, descriptors: ['pipe'] })
  return { process, pipe: process.pipes.get(3) as InspectorPipe }
}

async function read(answer: string): Promise<unknown> {
  const { process, pipe } = await inspector(answer)
  const reading = await new FilterPipe(pipe, 10_000).read(4711)
  await process.wait()
  return reading
}

test('a filter is told by the hash of its bytes, and that there is none by null', async () => {
  expect(await read('printf "Fof $pid" >&3')).toEqual({ hash: createHash('sha256').update('of 4711').digest('hex') })
  expect(await read('printf F >&3')).toEqual({ hash: null })
})

test('what cannot be read is told as that, and so is an end without an answer', async () => {
  expect(await read('printf "Elauncher: trace the process" >&3')).toEqual({ unreadable: 'launcher: trace the process' })
  expect(await read('exit 0')).toEqual({ unreadable: 'the launcher told no filter' })
})

test('who does not answer in time is not waited for', async () => {
  const { process, pipe } = await inspector('read never <&0; printf F >&3')
  expect(await new FilterPipe(pipe, 50).read(4711)).toEqual({ unreadable: 'the launcher told no filter' })
  process.channel.end()
  await process.wait()
})

test('closing without a question lets it go, and waits for its end', async () => {
  const { process, pipe } = await inspector('printf "told ($pid)" >&2')
  const filter = new FilterPipe(pipe, 10_000)
  await filter.close()
  await process.wait()
  expect([process.diagnosis(), pipe.destroyed]).toEqual(['told ()', true])
})

test('one that is gone before anyone listens is not waited for', { timeout: 5000 }, async () => {
  const process = await spawnProcess(['/bin/true'], { cwd: '/', env: {}, descriptors: ['pipe', 'pipe'] })
  const [asked, closed] = [process.pipes.get(3), process.pipes.get(4)] as [InspectorPipe, InspectorPipe]
  await Promise.all([once(asked, 'close'), once(closed, 'close'), process.wait()])
  expect(await new FilterPipe(asked, 10_000).read(4711)).toEqual({ unreadable: 'the launcher told no filter' })
  expect(await new FilterPipe(closed, 10_000).close()).toBeUndefined()
})

test('what reads filters answers as soon as it was told a line', async () => {
  const process = await spawnProcess([nativeProgram('inspect')], { cwd: '/', env: {} })
  process.channel.write('not a pid\n')
  expect((await process.wait()).code).not.toBe(0)
  expect(process.diagnosis()).toContain('the pid')
})
