import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { openBench } from './file-worker.js'

it('a path that is too long to be told hides nothing but what is in it, and is told at the end', async () => {
  await using bench = openBench()
  execFileSync('/usr/bin/python3', ['-c', "import os,sys\nos.chdir(sys.argv[1])\nfor _ in range(70): os.mkdir('d'*250); os.chdir('d'*250)", bench.folder])
  writeFileSync(`${bench.folder}/z`, '')
  const names: string[] = []
  const listing = async (): Promise<void> => {
    for await (const { name } of bench.worker.list(bench.path(''))) names.push(Buffer.from(name).toString())
  }
  await expect(listing()).rejects.toMatchObject({ errno: 36 })
  expect(names.at(-1)).toBe('z')
  expect(names.length).toBe(Math.floor((16_384 + 1) / 251) + 1)
  await bench.worker.remove(bench.path('d'.repeat(250)), { recursive: true })
}, 300_000)
