import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Ending, Peer } from './frames.js'
import { testUnless } from '../unless.js'

const MiB = 2n ** 20n
const tmpfsMagic = 0x01021994
/** Burns this much time of a processor, holding this much memory. */
const burn = (ms: number, mebibytes: number) => `import time
held = b'x' * (${mebibytes} << 20)
while time.process_time() < ${ms / 1000}: pass`

/** Runs each text as a process that is left to the keeper, one after the other, and waits until the keeper has reaped it. */
const leaving = (texts: readonly string[]) => `import os, sys, time
for text in ${JSON.stringify(texts)}:
  read, write = os.pipe()
  child = os.fork()
  if child == 0:
    orphan = os.fork()
    if orphan == 0: os.execv(sys.executable, [sys.executable, '-c', text])
    os.write(write, str(orphan).encode()); os._exit(0)
  os.waitpid(child, 0)
  orphan = os.read(read, 20).decode()
  while os.path.exists('/proc/' + orphan): time.sleep(0.01)`

async function endingOf(program: string, cwd = '/'): Promise<{ readonly ending: Ending; readonly said: string }> {
  await using peer = new Peer()
  const { stdout, stderr, ending } = await peer.run(1, { argv: ['/usr/bin/python3', '-c', program], cwd })
  expect([ending.kind, ending.code, stderr.toString()]).toEqual([0, 0, ''])
  return { ending, said: stdout.toString() }
}

test('usage counts what the program and the children it waited for burned', async () => {
  const { ending } = await endingOf(`import subprocess, sys\nsubprocess.run([sys.executable, '-c', ${JSON.stringify(burn(300, 48))}])`)
  expect(ending.userUs + ending.systemUs).toBeGreaterThan(300_000n)
  expect(ending.peakBytes).toBeGreaterThan(48n * MiB)
})

test('usage counts what was left to the keeper: times are added, of the peaks the highest is told', async () => {
  const { ending } = await endingOf(leaving([burn(300, 64), burn(300, 16), burn(300, 64)]))
  expect(ending.userUs + ending.systemUs).toBeGreaterThan(900_000n)
  expect(ending.peakBytes).toBeGreaterThan(64n * MiB)
  expect(ending.peakBytes).toBeLessThan(120n * MiB)
})

test('what one run burned is not told of the next', async () => {
  await using peer = new Peer()
  await peer.run(1, { argv: ['/usr/bin/python3', '-c', burn(500, 64)] })
  const { ending } = await peer.run(2, { argv: ['true'] })
  expect(ending.userUs + ending.systemUs).toBeLessThan(400_000n)
  expect(ending.peakBytes).toBeLessThan(32n * MiB)
})

testUnless(statfsSync(tmpdir()).type === tmpfsMagic && 'the temporary folder is on no storage')(
  'bytes that went to storage and came from it are told, of the program and of what was left to the keeper',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'warden-usage-'))
    try {
      const touch = (name: string) => `import os, resource, sys
fd = os.open('${name}', os.O_RDWR | os.O_CREAT)
os.write(fd, b'x' * (1 << 20)); os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
os.pread(fd, 1 << 20, 0)
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_inblock, used.ru_oublock, flush=True)`
      const { ending, said } = await endingOf(`${touch('own')}\n${leaving([touch('first'), touch('second')])}`, folder)
      const told = said
        .trimEnd()
        .split('\n')
        .map((line) => line.split(' ').map(BigInt) as [bigint, bigint])
      const sum = (index: 0 | 1) => told.reduce((bytes, each) => bytes + each[index] * 512n, 0n)
      expect(told).toHaveLength(3)
      expect(sum(1)).toBeGreaterThanOrEqual(3n * MiB)
      expect(ending.writtenBytes).toBeGreaterThanOrEqual(sum(1))
      expect(ending.readBytes).toBeGreaterThanOrEqual(sum(0))
      expect(ending.writtenBytes).toBeLessThan(2n * sum(1))
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
)
