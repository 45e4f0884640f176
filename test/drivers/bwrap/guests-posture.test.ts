import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../../src/compose.js'
import type { Platform } from '../../../src/contract/platform.js'
import type { Receipt } from '../../../src/contract/receipt.js'
import { Sandbox } from '../../../src/sandbox/index.js'
import { openGuest } from './open-guest.js'
import { plantedDriver } from './planted-drivers.js'

const python = (script: string): string[] => ['/usr/bin/python3', '-I', '-S', '-c', script]

/** Prints once it is up; its first thread ends, and another lives. */
const deadLeader = `
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def stay():
  while not os.path.exists('/tmp/over'): time.sleep(.02)
if os.fork() != 0: sys.exit(stay())
if libc.unshare(int(sys.argv[1], 0)) != 0: print('refused', ctypes.get_errno(), flush=True)
def live():
  while open('/proc/self/stat').read().rsplit(')', 1)[1].split()[0] != 'Z': time.sleep(.01)
  os.write(1, b'up\\n')
  stay()
threading.Thread(target=live).start()
libc.syscall(60, 0)
`

/** Each of the processes has a child and ends. */
const forkChain = `
import os
os.write(1, b'up\\n')
while True:
  if os.fork() != 0: os._exit(0)
`

const shortThreads = `
import os, threading, time
os.write(1, b'up\\n')
while True: threading.Thread(target=lambda: time.sleep(.002)).start()
`

let platform: Platform
beforeAll(() => {
  platform = createPlatform()
})
afterAll(() => platform[Symbol.asyncDispose]())

async function inspectedWhile(command: string[], times: number): Promise<Receipt['inspected'][]> {
  await using sandbox = await Sandbox.create({ platform, limits: { processes: 64 } })
  const program = await sandbox.spawn(command)
  await program.stdout.getReader().read()
  const all: Receipt['inspected'][] = []
  for (let time = 0; time < times; time += 1) all.push((await sandbox.receipt()).inspected)
  await program.kill()
  return all
}

describe('a receipt', () => {
  test('counts a process whose first thread has ended by the thread that lives', async () => {
    expect(await inspectedWhile([...python(deadLeader), '0'], 1)).toEqual([{ processes: 2, threads: 2, complete: true }])
  })

  test('of a guest that forks and ends in a chain never claims that nothing runs, and closes nothing', { timeout: 300_000 }, async () => {
    // Every link of the chain belongs to nobody when the one before has ended; the run itself lasts.
    const all = await inspectedWhile(python(`import os, time\nif os.fork() != 0: time.sleep(60)\n${forkChain}`), 20)
    expect(all.filter(({ processes, complete }) => processes === 0 || (complete && processes < 2))).toEqual([])
  })

  test('of a guest whose threads live for a moment only closes nothing', { timeout: 300_000 }, async () => {
    const all = await inspectedWhile(python(shortThreads), 20)
    expect(all.filter(({ processes, threads }) => processes !== 1 || threads < 1)).toEqual([])
  })
})

describe('everything in a cell', () => {
  let place: string
  beforeAll(() => {
    place = mkdtempSync(join(tmpdir(), 'gbx-guests-'))
  })
  afterAll(() => rmSync(place, { recursive: true, force: true }))

  test('is also a thread that left for namespaces of its own before the first of its process ended', { timeout: 300_000 }, async () => {
    const passage = 'if (self_filter_load('
    const driver = await plantedDriver({ warden: { file: 'main.c', passage, instead: `if (permitted == 0 && self_filter_load(` } }, join(place, 'unfiltered'))
    await using guest = await openGuest({ driver })
    // User and network.
    const script = guest.sh(`/usr/bin/python3 -I -S -c "${deadLeader.replaceAll('\\', '\\\\')}" 0x50000000 > /tmp/said`)
    while (!/up|refused/.test(await guest.sh('cat /tmp/said'))) await new Promise((resolve) => setTimeout(resolve, 20))
    expect(await guest.sh('cat /tmp/said')).toBe('up\n')
    const postures = await guest.cell.posture({ kind: 'everything' })
    const placed = postures.map(({ subject, observations }) => [
      subject.replaceAll(/\d+/g, 'N'),
      (observations.find(({ control }) => control === 'placement')?.value as { namespaces: string } | undefined)?.namespaces,
    ])
    expect(placed.filter(([, namespaces]) => namespaces !== 'cell' && namespaces !== undefined)).toEqual([['pid N thread N', 'other net, user']])
    const [stray] = postures.filter(({ subject }) => subject.includes('thread'))
    expect(stray?.observations.find(({ control }) => control === 'capabilities')?.value).toMatchObject({
      effective: expect.stringMatching(/^[1-9a-f]/) as string,
    })
    await guest.sh('touch /tmp/over')
    await script
  })
})
