import { readFileSync, readlinkSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { hasBwrap, isRoot, ManyIdCell, singleIdCell } from './cells.js'
import { filterOf, type Peer, type Start, toldPayload, TYPE } from './frames.js'
import { descendantsOf, hostPid } from './processes.js'
import { testUnless } from '../unless.js'

const linerId = 65_531
const disk = { bytes: 1_048_576n, inodes: 64n }
const lined = (script: string, more: Partial<Start> = {}): Start => ({ argv: ['/bin/sh', '-c', script], uid: 1000, gid: 1000, liner: disk, ...more })
const lacking = hasBwrap ? false : 'no bwrap here'
const failureOf = ({ payload }: { payload: Buffer }) => ({
  stage: payload.readUInt32LE(0),
  errno: payload.readUInt32LE(4),
  text: payload.subarray(8).toString(),
})

/** Its number on the host, given the one that the cell has for it; its own is another. */
function linedPid(peer: Peer, pid: number): number {
  const found = descendantsOf(peer.child.pid as number).find((row) =>
    new RegExp(`^NSpid:.*\\s${pid}\\s\\d+$`, 'm').test(readFileSync(`/proc/${row.pid}/status`, 'utf8')),
  )
  if (!found) throw new Error(`no process in a liner is called ${pid}`)
  return found.pid
}

interface LinedCell extends AsyncDisposable {
  readonly peer: Peer
}

async function openSingle(): Promise<LinedCell> {
  const peer = singleIdCell(['--cradle', '1000', '1000'])
  await peer.takeType(TYPE.HELLO)
  peer.send({ type: TYPE.CONFIGURE, payload: filterOf([]) })
  return { peer, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() }
}

async function openMany(): Promise<LinedCell> {
  const cell = await ManyIdCell.open(undefined, ['--cradle', `${linerId}`, `${linerId}`])
  await cell.peer.takeType(TYPE.HELLO)
  cell.peer.send({ type: TYPE.CONFIGURE, payload: filterOf([]) })
  return cell
}

const kinds = [
  ['a cell of one id', openSingle, lacking],
  ['a cell of many ids', openMany, lacking || (isRoot ? false : 'only root maps many ids')],
] as const

describe.for(kinds)('in %s', ([, open, why]) => {
  testUnless(why)('a program in a liner is nobody else, alone, and with nothing', async () => {
    await using cell = await open()
    const script =
      'id -u; id -g; echo $$; ls /proc | grep -c "^[0-9]"; grep -E "^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):" /proc/self/status | sort -u -k2; ls -A /workspace /tmp'
    const said = await cell.peer.run(1, lined(script))
    expect([said.stderr.toString(), said.ending.code]).toEqual(['', 0])
    expect(said.stdout.toString()).toBe('1000\n1000\n2\n4\nCapInh:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n/tmp:\n\n/workspace:\n')
  })

  testUnless(why)('a program cannot end by its limits who keeps it, and sets its own', async () => {
    await using cell = await open()
    const said = await cell.peer.run(1, lined('prlimit --pid 1 --cpu=0:0; prlimit --pid 0 --cpu=77:77 && prlimit --pid 1 --cpu --output SOFT --noheadings'))
    expect([said.stdout.toString().trim(), said.ending.code]).toEqual(['unlimited', 0])
    expect(said.stderr.toString()).toMatch(/not permitted/)
  })

  testUnless(why)('what one leaves behind the next does not see', async () => {
    await using cell = await open()
    const plant = 'echo a >/workspace/a; echo b >/tmp/b; (setsid sleep 1000 >/dev/null 2>&1 &); echo planted'
    expect((await cell.peer.run(1, lined(plant))).stdout.toString()).toBe('planted\n')
    const look = await cell.peer.run(2, lined('cat /workspace/* /tmp/* 2>/dev/null; for p in /proc/[0-9]*; do cat $p/comm; done | sort'))
    expect(look.stdout.toString().split('\n')).not.toContain('sleep')
    expect(look.stdout.toString()).not.toMatch(/^[ab]$/m)
    cell.peer.send({ type: TYPE.KILL, run: 1 })
    await cell.peer.takeType(TYPE.GONE, 1)
  })

  testUnless(why)('it waits at its gate in namespaces of its own, is told later, and ends by a kill with all it started', async () => {
    await using cell = await open()
    const { peer } = cell
    peer.start(1, { argv: [], later: true, uid: 1000, gid: 1000, liner: disk })
    const pid = (await peer.takeType(TYPE.GATED, 1)).payload.readUInt32LE(0)
    const [host, own] = [linedPid(peer, pid), hostPid(peer.child.pid as number, 1)]
    for (const name of ['user', 'mnt', 'pid', 'ipc', 'net', 'uts'])
      expect(readlinkSync(`/proc/${host}/ns/${name}`)).not.toBe(readlinkSync(`/proc/${own}/ns/${name}`))
    peer.send({ type: TYPE.RELEASE, run: 1, payload: toldPayload({ argv: ['/bin/sh', '-c', 'sleep 1000 & sleep 1000 & echo on; wait'], cwd: '/workspace' }) })
    expect((await peer.takeType(TYPE.STARTED, 1)).payload.readUInt32LE(0)).toBe(pid)
    await peer.takeType(TYPE.OUTPUT, 1)
    peer.send({ type: TYPE.KILL, run: 1 })
    await peer.takeType(TYPE.GONE, 1)
    expect(() => readFileSync(`/proc/${host}/status`)).toThrow()
  })

  testUnless(why)('its disk is bounded, and neither /proc nor the root can be written to', async () => {
    await using cell = await open()
    const script = [
      'dd if=/dev/zero of=/workspace/big bs=64k count=40 2>/dev/null; stat -c %s /workspace/big',
      '(echo 1 >/usr/x) 2>/dev/null || echo sealed',
      '(echo 1 >/proc/sys/kernel/hostname) 2>/dev/null || echo closed',
      '(umount /proc || umount /workspace || mount -t tmpfs x /tmp) 2>/dev/null || echo kept',
      'cat /proc/timer_list | wc -c',
    ].join('; ')
    expect((await cell.peer.run(1, lined(script))).stdout.toString()).toBe('1048576\nsealed\nclosed\nkept\n0\n')
  })

  testUnless(why)('it fails for its program and its folder as any other, and its exit is told with its usage', async () => {
    await using cell = await open()
    const { peer } = cell
    peer.start(1, { ...lined(''), argv: ['/no/such'] })
    expect(failureOf(await peer.takeType(TYPE.FAILED, 1))).toMatchObject({ stage: 2, errno: 2 })
    peer.start(2, { ...lined('true'), cwd: '/nowhere' })
    expect(failureOf(await peer.takeType(TYPE.FAILED, 2))).toMatchObject({ stage: 1, errno: 2 })
    const { ending } = await peer.run(3, lined('exit 7'))
    expect(ending).toMatchObject({ kind: 0, code: 7 })
    const killed = await peer.run(4, lined('kill -TERM $$'))
    expect(killed.ending).toMatchObject({ kind: 1, code: 15 })
  })

  testUnless(why)('a long environment comes whole, and many are there at once', async () => {
    await using cell = await open()
    const long = 'x'.repeat(100_000)
    const said = await cell.peer.run(1, lined('echo ${#LONG}', { env: [`LONG=${long}`, 'PATH=/bin'] }))
    expect(said.stdout.toString()).toBe('100000\n')
    const all = await Promise.all(Array.from({ length: 12 }, (_, index) => cell.peer.run(index + 2, lined(`sleep 0.2; echo ${index}`))))
    expect(all.map(({ stdout }) => stdout.toString())).toEqual(Array.from({ length: 12 }, (_, index) => `${index}\n`))
  })
})

testUnless(lacking)('where a program had the same id outside of a liner, no liner is made any more', async () => {
  await using cell = await openSingle()
  await cell.peer.run(1, { argv: ['/bin/true'], uid: 1000, gid: 1000 })
  cell.peer.start(2, lined('true'))
  expect(failureOf(await cell.peer.takeType(TYPE.FAILED, 2))).toEqual({ stage: 3, errno: 1, text: 'make a liner after a program outside of one' })
})

testUnless(lacking)('a cell without a cradle refuses a liner', async () => {
  await using peer = singleIdCell()
  peer.start(1, lined('true'))
  expect(failureOf(await peer.takeType(TYPE.FAILED, 1))).toEqual({ stage: 3, errno: 95, text: 'make a liner in this cell' })
})
