import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { skipGroup } from '../unless.js'
import { isRoot } from './cells.js'
import { Peer, type Start, TYPE } from './frames.js'
import { descendantsOf } from './processes.js'

const guest = { uid: 1000, gid: 1000, cwd: '/' }
const shell = (script: string, more: Partial<Start> = {}): Start => ({ argv: ['sh', '-c', script], ...guest, ...more })
const startedPid = async (peer: Peer, run: number) => (await peer.takeType(TYPE.STARTED, run)).payload.readUInt32LE(0)
const below = (peer: Peer) => descendantsOf(peer.child.pid as number).filter(({ state }) => state !== 'Z')

/** The keeper and the program-to-be, once there is nothing else: the keeper of an earlier run may still be on its way out. */
async function spareOf(peer: Peer): Promise<{ readonly keeper: number; readonly program: number }> {
  const pair = (): readonly (number | undefined)[] => {
    const all = below(peer)
    const keeper = all.find(({ parent }) => parent === peer.child.pid)?.pid
    return all.length === 2 ? [keeper, all.find(({ parent }) => parent === keeper)?.pid] : []
  }
  await expect.poll(pair, { timeout: 10_000 }).toEqual([expect.any(Number), expect.any(Number)])
  const [keeper, program] = pair()
  return { keeper: keeper as number, program: program as number }
}

/** After two programs of a kind, whatever their run ids. */
async function withSpare(peer: Peer): Promise<{ readonly keeper: number; readonly program: number }> {
  await peer.run(1, shell('true'))
  await peer.run(2, shell('true'))
  return spareOf(peer)
}

describe('a spare', () => {
  skipGroup(!isRoot && 'only root has ids to give')

  test('is made after two programs of a kind, and is what the next one of it runs in', async () => {
    await using peer = new Peer()
    await peer.run(1, shell('true'))
    await pause(50)
    expect(below(peer)).toEqual([])
    await peer.run(2, shell('true'))
    const { keeper, program } = await spareOf(peer)
    peer.start(3, shell('echo $$ $PPID'))
    expect(await startedPid(peer, 3)).toBe(program)
    expect((await peer.collect(3)).stdout.toString()).toBe(`${program} ${keeper}\n`)
  })

  test('becomes all that its START says: arguments, variables, folder and limits', async () => {
    await using peer = new Peer()
    const { program } = await withSpare(peer)
    // By the shell alone: while it starts another program its signals are blocked.
    const script =
      'echo "$0 $1 $V $(pwd) $(ulimit -n) $(id -u):$(id -g):$(id -G)"; for fd in $(seq 0 40); do [ -e /proc/$$/fd/$fd ] && printf "%s " $fd; done; echo; while IFS= read -r line; do case "$line" in SigIgn*|SigBlk*|CapBnd*|CapEff*|NoNewPrivs*) echo "$line";; esac; done < /proc/$$/status'
    peer.start(3, { argv: ['sh', '-c', script, 'zero', 'a b'], ...guest, cwd: '/usr/bin', env: ['PATH=/usr/bin:/bin', 'V=v'], rlimits: [[7, 33n, 44n]] })
    expect(await startedPid(peer, 3)).toBe(program)
    const none = '0'.repeat(16)
    const said = (await peer.collect(3)).stdout.toString()
    const status = `SigBlk:\t${none}\nSigIgn:\t${none}\nCapEff:\t${none}\nCapBnd:\t${none}\nNoNewPrivs:\t1\n`
    expect(said).toBe(`zero a b v /usr/bin 33 1000:1000:1000\n0 1 2 \n${status}`)
  })

  test('waits at the gate of its START as every program does', async () => {
    await using peer = new Peer()
    for (const run of [1, 2]) {
      peer.start(run, shell('true', { gate: true }))
      await peer.takeType(TYPE.GATED, run)
      peer.send({ type: TYPE.RELEASE, run })
      await peer.collect(run)
    }
    const { program } = await spareOf(peer)
    peer.start(3, shell('echo ran', { gate: true }))
    expect((await peer.takeType(TYPE.GATED, 3)).payload.readUInt32LE(0)).toBe(program)
    expect(readFileSync(`/proc/${program}/status`, 'utf8')).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m)
    peer.send({ type: TYPE.RELEASE, run: 3 })
    expect((await peer.collect(3)).stdout.toString()).toBe('ran\n')
  })

  test('is left alone by a START of another kind, and by the end of another run', async () => {
    await using peer = new Peer()
    const { keeper, program } = await withSpare(peer)
    peer.start(3, shell('sleep 60', { stdin: true }))
    expect(await startedPid(peer, 3)).not.toBe(program)
    peer.send({ type: TYPE.KILL, run: 3 })
    await peer.takeType(TYPE.GONE, 3)
    expect(await spareOf(peer)).toEqual({ keeper, program })
  })

  test('makes way for another when two programs of another kind were started', async () => {
    await using peer = new Peer()
    const { program } = await withSpare(peer)
    for (const run of [3, 4]) await peer.run(run, shell('true', { uid: 1001 }))
    await expect.poll(() => existsSync(`/proc/${program}`), { timeout: 10_000 }).toBe(false)
    const next = await spareOf(peer)
    peer.start(5, shell('id -u', { uid: 1001 }))
    expect(await startedPid(peer, 5)).toBe(next.program)
    expect((await peer.collect(5)).stdout.toString()).toBe('1001\n')
  })

  test.each(['keeper', 'program'] as const)('whose %s was killed is no loss: the next program runs', async (which) => {
    await using peer = new Peer()
    const spare = await withSpare(peer)
    process.kill(spare[which], 'SIGKILL')
    await expect.poll(() => below(peer).some(({ pid }) => pid === spare.program), { timeout: 10_000 }).toBe(false)
    expect((await peer.run(3, shell('echo on'))).stdout.toString()).toBe('on\n')
    expect((await peer.run(4, shell('echo and on'))).stdout.toString()).toBe('and on\n')
  })

  test('is not asked to take more than it can: a large START is carried out all the same', async () => {
    await using peer = new Peer()
    await withSpare(peer)
    const { stdout } = await peer.run(3, { ...shell('echo ${#V}'), env: ['PATH=/usr/bin:/bin', `V=${'v'.repeat(100_000)}`] })
    expect(stdout.toString()).toBe('100000\n')
  })

  test.each(['CLOSE', 'the end of stdin', 'SIGKILL to the warden'])('goes with the warden: %s', async (how) => {
    await using peer = new Peer()
    const { keeper, program } = await withSpare(peer)
    if (how === 'CLOSE') peer.send({ type: TYPE.CLOSE })
    else if (how === 'the end of stdin') peer.stdin.end()
    else peer.child.kill('SIGKILL')
    await peer.exited
    await expect.poll(() => [keeper, program].filter((pid) => existsSync(`/proc/${pid}`)), { timeout: 10_000 }).toEqual([])
  })
})

test('a spare is never made where guests have the id of the warden', async () => {
  await using peer = new Peer()
  for (const run of [1, 2, 3]) await peer.run(run, { argv: ['true'] })
  await pause(50)
  expect(below(peer)).toEqual([])
})
