import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { testUnless } from '../unless.js'
import { hasBwrap, isRoot, ManyIdCell, singleIdCell } from './cells.js'
import { type Frame, filterOf, Peer, type Start, TYPE } from './frames.js'
import { hostPid } from './processes.js'

const ids = { uid: 1000, gid: 1000 }
const worker: Start = { argv: ['files'], worker: true }
const failureOf = (frame: Frame) => ({ stage: frame.payload.readUInt32LE(0), errno: frame.payload.readUInt32LE(4), text: frame.payload.subarray(8).toString() })
const pidOf = (frame: Frame) => frame.payload.readUInt32LE(0)

/** What a guest of the same id finds out about another process; `control` is one that it may look into. */
const spy = (pid: number) => `import os,subprocess,time
control=subprocess.Popen(["sleep","60"])
while open(f"/proc/{control.pid}/comm").read()!="sleep\\n": time.sleep(.01)
for name,pid in (("worker",${pid}),("control",control.pid)):
  for what in ("mem","maps","environ","exe","cwd","fd","fd/0"):
    path=f"/proc/{pid}/{what}"
    try:
      if what=="fd": os.listdir(path)
      elif what in ("exe","cwd"): os.readlink(path)
      else: os.close(os.open(path,os.O_RDONLY|os.O_NONBLOCK))
      print(name,what,"open")
    except OSError: pass
print(repr(open("/proc/${pid}/cmdline").read().strip("\\0")),open("/proc/${pid}/comm").read().strip())
control.kill()`

const cells: readonly (readonly [name: string, able: boolean, open: () => Promise<AsyncDisposable & { peer: Peer }>])[] = [
  ['one id', hasBwrap, () => Promise.resolve(singleIdCell()).then((peer) => ({ peer, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() }))],
  ['ids of its own', hasBwrap && isRoot, () => ManyIdCell.open()],
]

describe.each(cells)('a file worker in a cell with %s', (_name, able, open) => {
  const inCell = (promise: string, run: (peer: Peer) => Promise<void>) =>
    testUnless(!able && 'needs bwrap, and root for ids of its own')(promise, async () => {
      await using cell = await open()
      await run(cell.peer)
    })

  inCell('has the guest’s ids, no capability, no new privileges, the filter, and no descriptor but its stdio', async (peer) => {
    peer.send({ type: TYPE.CONFIGURE, payload: filterOf([]) })
    peer.start(1, { argv: ['sleep', '60'], stdin: true, ...ids })
    peer.start(2, { ...worker, ...ids, cwd: '/workspace' })
    const pids = [pidOf(await peer.takeType(TYPE.STARTED, 1)), pidOf(await peer.takeType(TYPE.STARTED, 2))]
    const [program = 0, pid = 0] = pids.map((each) => hostPid(peer.child.pid as number, each))
    const fields = (of: number, names: readonly string[]) =>
      names.map((name) => new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(readFileSync(`/proc/${of}/status`, 'utf8'))?.[1]?.trim())
    const none = '0'.repeat(16)
    expect(fields(pid, ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])).toEqual(new Array(5).fill(none))
    expect(fields(pid, ['NoNewPrivs', 'Seccomp', 'SigBlk', 'Name'])).toEqual(['1', '2', none, 'files'])
    const same = ['Uid', 'Gid', 'Groups', 'Seccomp_filters']
    expect(fields(pid, same)).toEqual(fields(program, same))
    expect(readdirSync(`/proc/${pid}/fd`).sort()).toEqual(['0', '1', '2'])
  })

  inCell('shows others of its id neither memory nor descriptors nor arguments', async (peer) => {
    peer.start(1, { ...worker, ...ids })
    const pid = pidOf(await peer.takeType(TYPE.STARTED, 1))
    const { stdout, stderr } = await peer.run(2, { argv: ['/usr/bin/python3', '-c', spy(pid)], ...ids })
    expect(stderr.toString()).toBe('')
    expect(stdout.toString()).toBe(`${['mem', 'maps', 'environ', 'exe', 'cwd', 'fd', 'fd/0'].map((what) => `control ${what} open\n`).join('')}'' files\n`)
  })

  inCell('waits at its gate as a program does, and ends when its input does', async (peer) => {
    peer.start(1, { ...worker, ...ids, gate: true })
    const pid = pidOf(await peer.takeType(TYPE.GATED, 1))
    peer.send({ type: TYPE.RELEASE, run: 1 })
    expect(pidOf(await peer.takeType(TYPE.STARTED, 1))).toBe(pid)
    peer.send({ type: TYPE.STDIN, run: 1 })
    expect((await peer.collect(1)).ending).toMatchObject({ kind: 0, code: 0 })
  })
})

test('a file worker whose requests make no sense exits with 70 and one line why', async () => {
  await using peer = new Peer()
  peer.start(1, worker)
  peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.alloc(64, 0x66) })
  const { stdout, stderr, ending } = await peer.collect(1)
  expect([stdout.length, ending.kind, ending.code]).toEqual([0, 0, 70])
  expect(stderr.toString()).toMatch(/^[^\n]+\n$/)
})

test('a killed file worker is gone', async () => {
  await using peer = new Peer()
  peer.start(1, worker)
  await peer.takeType(TYPE.STARTED, 1)
  peer.send({ type: TYPE.KILL, run: 1 })
  await peer.takeType(TYPE.GONE, 1)
  expect((await peer.collect(1)).ending).toMatchObject({ kind: 1, code: 9 })
})

test('the folder of layers is refused where there is none', async () => {
  await using peer = new Peer()
  peer.start(1, { ...worker, layers: true })
  expect(failureOf(await peer.takeType(TYPE.FAILED, 1))).toEqual({ stage: 3, errno: 95, text: 'find the layers' })
})
