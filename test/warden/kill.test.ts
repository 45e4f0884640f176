import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Peer, type Start, TYPE, u32, WARDEN } from './frames.js'
import { descendantsOf, forkBomb, markedBy } from './processes.js'
import { testUnless } from '../unless.js'

const PATH = 'PATH=/usr/bin:/bin'
const nobody = process.getuid?.() === 0 ? { uid: 54322, gid: 54322 } : {}
const newMark = () => `GLOVEBOX_TEST_MARK=${process.pid}.${Math.random()}`
const marked = (script: string, mark: string, more: Partial<Start> = {}): Start => ({ argv: ['sh', '-c', script], env: [PATH, mark], ...more })

async function killed(peer: Peer, run: number) {
  peer.send({ type: TYPE.KILL, run })
  await peer.takeType(TYPE.GONE, run)
}

test('a kill reaches what made a session of its own and forked twice', async () => {
  const mark = newMark()
  await using peer = new Peer()
  peer.start(1, marked('(setsid sh -c "trap \\"\\" TERM HUP INT; sleep 60 & sleep 60" &) ; echo ready; sleep 60', mark))
  await peer.takeType(TYPE.OUTPUT, 1)
  await expect.poll(() => markedBy(mark).length).toBeGreaterThanOrEqual(3)
  await killed(peer, 1)
  expect(markedBy(mark)).toEqual([])
  expect(descendantsOf(peer.child.pid as number)).toEqual([])
  expect((await peer.collect(1)).ending).toMatchObject({ kind: 1, code: 9 })
})

test('a kill catches a program that respawns itself without end', async () => {
  const mark = newMark()
  await using peer = new Peer()
  const respawn = 'f() { (setsid sh -c "$0" "$0" >/dev/null 2>&1 &) ; exit 0; }; f'
  peer.start(1, { argv: ['sh', '-c', `echo ready; exec sh -c '${respawn}' '${respawn}'`], env: [PATH, mark] })
  await peer.takeType(TYPE.OUTPUT, 1)
  await pause(100)
  await killed(peer, 1)
  expect(markedBy(mark)).toEqual([])
})

test('a kill catches a program that forks and exits faster than anyone can look', async () => {
  const mark = newMark()
  await using peer = new Peer()
  const runner = 'import os\nprint("ready",flush=True)\nwhile True:\n  if os.fork(): os._exit(0)'
  peer.start(1, { argv: ['/usr/bin/python3', '-I', '-S', '-c', runner], env: [PATH, mark] })
  await peer.take((frame) => frame.type === TYPE.OUTPUT && frame.payload.length > 0)
  await pause(50)
  await killed(peer, 1)
  expect(markedBy(mark)).toEqual([])
  expect(descendantsOf(peer.child.pid as number)).toEqual([])
})

test('a kill ends a fork bomb at its process limit', async () => {
  const mark = newMark()
  await using peer = new Peer()
  peer.start(1, { argv: forkBomb(), env: [PATH, mark], ...nobody, rlimits: [[6, 120n, 120n]] })
  await peer.takeType(TYPE.OUTPUT, 1)
  await expect.poll(() => markedBy(mark).length).toBeGreaterThan(50)
  await killed(peer, 1)
  expect(markedBy(mark)).toEqual([])
  expect(descendantsOf(peer.child.pid as number)).toEqual([])
})

test('a kill leaves the other runs alone, their background processes too', async () => {
  const [first, second] = [newMark(), newMark()]
  await using peer = new Peer()
  await peer.run(1, marked('sleep 60 >/dev/null 2>&1 &', first))
  peer.start(2, marked('echo ready; sleep 60', second))
  await peer.takeType(TYPE.OUTPUT, 2)
  // While a process becomes another program, none of its environment is to be seen.
  await expect.poll(() => markedBy(first).length).toBe(1)
  await killed(peer, 2)
  expect([markedBy(first).length, markedBy(second).length]).toEqual([1, 0])
  await killed(peer, 1)
  expect(markedBy(first)).toEqual([])
})

test('a stopped program is killed, and told as killed', async () => {
  await using peer = new Peer()
  peer.start(1, { argv: ['sh', '-c', 'echo ready; kill -STOP $$'] })
  await peer.takeType(TYPE.OUTPUT, 1)
  await killed(peer, 1)
  expect((await peer.collect(1)).ending).toMatchObject({ kind: 1, code: 9 })
})

test('a program whose name reads like a dead one is killed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'warden-'))
  try {
    chmodSync(folder, 0o755)
    const sly = join(folder, 'x) Z 1\n(x) Z')
    copyFileSync('/bin/sleep', sly)
    chmodSync(sly, 0o755)
    const mark = newMark()
    await using peer = new Peer()
    peer.start(1, { argv: [sly, '60'], env: [mark] })
    await peer.takeType(TYPE.STARTED, 1)
    await killed(peer, 1)
    expect(markedBy(mark)).toEqual([])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a process whose first thread has ended is killed by its others', async () => {
  const mark = newMark()
  const python =
    'import ctypes,threading,time\nthreading.Thread(target=time.sleep,args=(60,)).start()\nprint("ready",flush=True)\nctypes.CDLL(None).pthread_exit(None)'
  await using peer = new Peer()
  peer.start(1, { argv: ['sh', '-c', `/usr/bin/python3 -c '${python}' & wait`], env: [PATH, mark] })
  await peer.take((frame) => frame.type === TYPE.OUTPUT && frame.payload.length > 0)
  await pause(100)
  await killed(peer, 1)
  expect(descendantsOf(peer.child.pid as number)).toEqual([])
})

test('a kill in the same breath as the start still answers both', async () => {
  await using peer = new Peer()
  const mark = newMark()
  for (let run = 1; run <= 30; run++) {
    peer.start(run, marked('sleep 60', mark))
    peer.send({ type: TYPE.KILL, run })
    peer.send({ type: TYPE.KILL, run })
    await peer.takeType(TYPE.GONE, run)
    await peer.takeType(TYPE.GONE, run)
    const answer = await peer.take((frame) => frame.run === run && (frame.type === TYPE.STARTED || frame.type === TYPE.FAILED))
    if (answer.type === TYPE.STARTED) expect((await peer.collect(run)).ending).toMatchObject({ kind: 1, code: 9 })
  }
  expect(markedBy(mark)).toEqual([])
})

test('a keeper that is killed takes its run with it: the rest dies, and the ending is called lost', async () => {
  const mark = newMark()
  await using peer = new Peer()
  peer.start(1, marked('(setsid sleep 60 >/dev/null 2>&1 &); echo ready; sleep 60', mark))
  peer.start(2, { argv: ['cat'], stdin: true })
  await peer.takeType(TYPE.OUTPUT, 1)
  const program = (await peer.takeType(TYPE.STARTED, 1)).payload.readUInt32LE(0)
  const keeper = descendantsOf(peer.child.pid as number).find((row) => row.pid === program)?.parent as number
  process.kill(keeper, 'SIGKILL')
  expect((await peer.collect(1)).ending.kind).toBe(2)
  await killed(peer, 1)
  expect(markedBy(mark)).toEqual([])
  peer.send({ type: TYPE.STDIN, run: 2 })
  expect((await peer.collect(2)).ending).toMatchObject({ kind: 0, code: 0 })
})

test('a keeper that is stopped does not keep its run from being killed', async () => {
  const mark = newMark()
  await using peer = new Peer()
  peer.start(1, marked('echo ready; sleep 60', mark))
  await peer.takeType(TYPE.OUTPUT, 1)
  const program = (await peer.takeType(TYPE.STARTED, 1)).payload.readUInt32LE(0)
  process.kill(descendantsOf(peer.child.pid as number).find((row) => row.pid === program)?.parent as number, 'SIGSTOP')
  await killed(peer, 1)
  expect(markedBy(mark)).toEqual([])
  expect((await peer.collect(1)).ending).toMatchObject({ kind: 1, code: 9 })
})

test.each(['CLOSE', 'the end of stdin', 'SIGTERM', 'a malformed frame'])('%s ends every run', async (how) => {
  const mark = newMark()
  await using peer = new Peer()
  await peer.run(1, marked('sleep 60 >/dev/null 2>&1 & (setsid sleep 60 >/dev/null 2>&1 &)', mark))
  peer.start(2, marked('echo ready; yes >/dev/null', mark))
  await peer.takeType(TYPE.OUTPUT, 2)
  await expect.poll(() => markedBy(mark).length).toBeGreaterThanOrEqual(3)
  if (how === 'CLOSE') peer.send({ type: TYPE.CLOSE })
  else if (how === 'SIGTERM') process.kill(peer.child.pid as number, 'SIGTERM')
  else if (how === 'a malformed frame') peer.send({ type: 0x66 })
  else peer.stdin.end()
  expect(await peer.exited).toBe(how === 'a malformed frame' ? 70 : 0)
  expect(markedBy(mark)).toEqual([])
})

test('orphans do not pile up as zombies while a program runs on', async () => {
  await using peer = new Peer()
  peer.start(1, { argv: ['sh', '-c', 'for i in $(seq 200); do (true & ) ; done; echo ready; sleep 60'] })
  await peer.takeType(TYPE.OUTPUT, 1)
  await expect.poll(() => descendantsOf(peer.child.pid as number).filter((row) => row.state === 'Z')).toEqual([])
})

test('a run beyond the 1,024th is refused with EAGAIN, and the others go on', async () => {
  await using peer = new Peer()
  for (let run = 1; run <= 1025; run++) peer.start(run, { argv: ['cat'], stdin: true })
  const refused = await peer.takeType(TYPE.FAILED, 1025)
  expect([refused.payload.readUInt32LE(0), refused.payload.readUInt32LE(4)]).toEqual([3, 11])
  for (let run = 1; run <= 1024; run++) await peer.takeType(TYPE.STARTED, run)
  peer.send({ type: TYPE.STDIN, run: 1024, payload: Buffer.from('still here') })
  expect((await peer.takeType(TYPE.OUTPUT, 1024)).payload.toString()).toBe('still here')
  peer.send({ type: TYPE.SIGNAL, run: 1, payload: u32(15) })
  expect((await peer.collect(1)).ending).toMatchObject({ kind: 1, code: 15 })
})

testUnless(process.getuid?.() !== 0 && 'this run is an ordinary user already')('an ordinary user has all of it', async () => {
  const mark = newMark()
  await using peer = new Peer([WARDEN, '--subreaper'], { uid: 54322, gid: 54322 })
  const said = await peer.run(1, marked('id -u; grep -E "^Cap[IPEA]" /proc/self/status; (setsid sleep 60 >/dev/null 2>&1 &)', mark, nobody))
  expect(said.stdout.toString()).toBe(`54322\n${['Inh', 'Prm', 'Eff', 'Amb'].map((set) => `Cap${set}:\t${'0'.repeat(16)}\n`).join('')}`)
  await killed(peer, 1)
  expect(markedBy(mark)).toEqual([])
})
