import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { WorkerEvent } from '../../src/channel/file-worker-replies.js'
import { openBench } from './file-worker.js'

const say = ({ kind, path, to }: WorkerEvent): string => [kind, Buffer.from(path), ...(to.length > 0 ? [Buffer.from(to)] : [])].join(' ')

/** Events up to the one that says so. */
async function until(events: AsyncIterator<WorkerEvent>, last: string): Promise<string[]> {
  const seen: string[] = []
  while (seen.at(-1) !== last) {
    const { value } = (await events.next()) as { value: WorkerEvent }
    // How often a change is told depends on how fast it is read.
    if (say(value) !== seen.at(-1)) seen.push(say(value))
  }
  return seen
}

it('what is made, changed, renamed and removed is told, also in folders that are made meanwhile', async () => {
  await using bench = openBench()
  mkdirSync(`${bench.folder}/w/a/b`, { recursive: true })
  const events = await bench.worker.watch(bench.path('w'), { recursive: true })
  writeFileSync(`${bench.folder}/w/f`, 'x')
  renameSync(`${bench.folder}/w/f`, `${bench.folder}/w/a/b/g`)
  expect(await until(events, 'renamed f a/b/g')).toEqual(['created f', 'changed f', 'renamed f a/b/g'])
  renameSync(`${bench.folder}/w/a`, `${bench.folder}/w/c`)
  appendFileSync(`${bench.folder}/w/c/b/g`, 'y')
  expect(await until(events, 'changed c/b/g')).toEqual(['renamed a c', 'changed c/b/g'])
  renameSync(`${bench.folder}/w/c/b`, `${bench.folder}/out`)
  writeFileSync(`${bench.folder}/w/c/b`, '')
  expect((await until(events, 'created c/b')).filter((event) => !event.startsWith('changed'))).toEqual(['removed c/b', 'created c/b'])
  writeFileSync(`${bench.folder}/out/unseen`, '')
  renameSync(`${bench.folder}/out`, `${bench.folder}/w/back`)
  const back = await until(events, 'created back/unseen')
  expect(back.filter((event) => event.startsWith('created'))).toEqual(['created back', 'created back/g', 'created back/unseen'])
  spawnSync('mkdir', ['-p', `${bench.folder}/w/n/o/p/q`])
  writeFileSync(`${bench.folder}/w/n/o/p/q/r`, '')
  await until(events, 'created n/o/p/q/r')
  rmSync(`${bench.folder}/w`, { recursive: true })
  expect((await until(events, 'removed ')).includes('removed n/o/p/q/r')).toBe(true)
})

it('a file is watched by its name: when it is written, replaced and removed', async () => {
  await using bench = openBench()
  writeFileSync(`${bench.folder}/f`, 'x')
  const events = await bench.worker.watch(bench.path('f'))
  appendFileSync(`${bench.folder}/f`, 'more')
  expect(await until(events, 'changed ')).toEqual(['changed '])
  writeFileSync(`${bench.folder}/other`, 'y')
  renameSync(`${bench.folder}/other`, `${bench.folder}/f`)
  rmSync(`${bench.folder}/f`)
  const seen = await until(events, 'removed ')
  expect(seen.filter((event) => event !== 'changed ')).toEqual(['created ', 'removed '])
})

it('events that were lost because nobody read are told as overflow, and folders made meanwhile are watched after it', async () => {
  await using bench = openBench()
  mkdirSync(`${bench.folder}/w`)
  const events = await bench.worker.watch(bench.path('w'), { recursive: true })
  const flood = `import os,sys
os.chdir(sys.argv[1])
names = ['a' * 250, 'b' * 250]
for name in names: open(name, 'w').close()
for i in range(40000): os.utime(names[i % 2])
os.mkdir('made')`
  await new Promise((resolve) => spawn('/usr/bin/python3', ['-c', flood, `${bench.folder}/w`]).on('close', resolve))
  await until(events, 'overflow ')
  writeFileSync(`${bench.folder}/w/made/f`, '')
  expect((await until(events, 'created made/f')).at(-1)).toBe('created made/f')
}, 300_000)

it('input amid a watch ends the worker, and so does the end of its input', async () => {
  await using bench = openBench()
  const events = await bench.worker.watch(bench.path(''))
  await bench.run.endInput()
  await expect(events.next()).rejects.toMatchObject({ code: 'broken' })
  expect(await bench.run.exited).toEqual({ code: 0, signal: null })
})
