import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { hasBwrap, singleIdCell } from './cells.js'
import { endingOf, filterOf, type Frame, Peer, type Start, toldPayload, TYPE } from './frames.js'
import { descendantsOf, hostPid } from './processes.js'
import { testUnless } from '../unless.js'

const failureOf = ({ payload }: Frame) => ({ stage: payload.readUInt32LE(0), errno: payload.readUInt32LE(4), text: payload.subarray(8).toString() })
const gatedPid = async (peer: Peer, run: number) => (await peer.takeType(TYPE.GATED, run)).payload.readUInt32LE(0)
const tell = (peer: Peer, run: number, told: Parameters<typeof toldPayload>[0]) => peer.send({ type: TYPE.RELEASE, run, payload: toldPayload(told) })

async function ready(peer: Peer, run: number, more: Partial<Start> = {}): Promise<number> {
  peer.start(run, { argv: [], later: true, ...more })
  return gatedPid(peer, run)
}

describe('a program that is told later what to become', () => {
  test('waits in the root folder, and becomes it with its arguments, environment and folder', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'warden-ready-'))
    try {
      await using peer = new Peer()
      const pid = await ready(peer, 1)
      tell(peer, 1, {
        argv: ['sh', '-c', 'echo "$$:$V:$1:$(pwd):$(tr "\\0" "," </proc/$$/environ)"', 'sh', 'a b'],
        env: ['PATH=/usr/bin:/bin', 'V=x\ny'],
        cwd: folder,
      })
      const said = await peer.collect(1)
      expect([said.stdout.toString(), said.ending.code]).toEqual([`${pid}:x\ny:a b:${folder}:PATH=/usr/bin:/bin,V=x\ny,\n`, 0])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('enters the folder that is there when it is released', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'warden-ready-'))
    try {
      mkdirSync(join(folder, 'work'))
      await using peer = new Peer()
      await ready(peer, 1)
      renameSync(join(folder, 'work'), join(folder, 'old'))
      mkdirSync(join(folder, 'new'))
      symlinkSync('new', join(folder, 'work'))
      tell(peer, 1, { argv: ['pwd', '-P'], cwd: join(folder, 'work') })
      expect((await peer.collect(1)).stdout.toString()).toBe(`${join(folder, 'new')}\n`)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('is, until its execve, all that one is that was told before', async () => {
    await using peer = new Peer()
    peer.send({ type: TYPE.CONFIGURE, payload: filterOf([]) })
    const state =
      'grep -E "^(Umask|Uid|Gid|Groups|FDSize|Sig[PBIC]|Shd|Cap|NoNewPrivs|Seccomp|Cpus|Mems|Speculation|CoreDumping)" /proc/self/status; cat /proc/self/limits; ls -l /proc/self/fd | sed "s/.* //" | wc -l; umask'
    const rlimits = [[7, 33n, 44n]] as const
    const told = await peer.run(1, { argv: ['sh', '-c', state], rlimits })
    await ready(peer, 2, { rlimits })
    tell(peer, 2, { argv: ['sh', '-c', state] })
    expect((await peer.collect(2)).stdout.toString()).toBe(told.stdout.toString())
    expect(told.stdout.toString()).toMatch(/NoNewPrivs:\t1\nSeccomp:\t2\n[^]*Max open files +33 +44/)
  })

  test('fails for its folder and its program as one does that was told before, and leaves nothing', async () => {
    await using peer = new Peer()
    await ready(peer, 1)
    tell(peer, 1, { argv: ['true'], cwd: '/nowhere' })
    expect(failureOf(await peer.takeType(TYPE.FAILED, 1))).toEqual({ stage: 1, errno: 2, text: 'enter /nowhere' })
    await ready(peer, 2)
    tell(peer, 2, { argv: ['no-such-program'] })
    expect(failureOf(await peer.takeType(TYPE.FAILED, 2))).toMatchObject({ stage: 2, errno: 2 })
    for (const run of [1, 2]) peer.send({ type: TYPE.KILL, run })
    for (const run of [1, 2]) await peer.takeType(TYPE.GONE, run)
    expect(descendantsOf(peer.child.pid as number)).toEqual([])
  })

  test.for([
    ['prlimit', (pid: number) => ['--nofile=9:9', '--pid', `${pid}`]],
    ['prlimit', (pid: number) => ['--as=0:0', '--pid', `${pid}`]],
    ['renice', (pid: number) => ['-n', '19', '-p', `${pid}`]],
    ['chrt', (pid: number) => ['--idle', '-p', '0', `${pid}`]],
  ] as const)('does not become it when others changed what it would keep: by %s', async ([tool, argumentsFor]) => {
    await using peer = new Peer()
    const pid = await ready(peer, 1)
    execFileSync(tool, argumentsFor(pid))
    tell(peer, 1, { argv: ['true'] })
    expect(failureOf(await peer.takeType(TYPE.FAILED, 1))).toEqual({ stage: 3, errno: 4, text: 'keep limits and priority at the gate' })
  })

  test('takes 32 KiB', async () => {
    await using peer = new Peer()
    await ready(peer, 1)
    const told = { argv: ['sh', '-c', 'echo ${#V}'], env: ['PATH=/usr/bin:/bin', 'V='] }
    const room = 32_768 - toldPayload(told).length
    tell(peer, 1, { ...told, env: ['PATH=/usr/bin:/bin', `V=${'x'.repeat(room)}`] })
    expect((await peer.collect(1)).stdout.toString()).toBe(`${room}\n`)
  })

  test('is ended at its gate by another, by a kill and with its keeper, and never ran', async () => {
    await using peer = new Peer()
    process.kill(await ready(peer, 1), 'SIGKILL')
    expect(endingOf(await peer.takeType(TYPE.EXITED, 1))).toMatchObject({ kind: 1, code: 9 })
    // What crossed on the way is no error.
    tell(peer, 1, { argv: ['echo', 'ran'] })
    await ready(peer, 2)
    peer.send({ type: TYPE.KILL, run: 2 })
    tell(peer, 2, { argv: ['echo', 'ran'] })
    await peer.takeType(TYPE.GONE, 2)
    const third = await ready(peer, 3)
    process.kill(descendantsOf(peer.child.pid as number).find(({ pid }) => pid === third)?.parent as number, 'SIGKILL')
    expect(endingOf(await peer.takeType(TYPE.EXITED, 3)).kind).toBe(2)
    expect((await peer.run(4, { argv: ['echo', 'next'] })).stdout.toString()).toBe('next\n')
    expect(peer.frames.filter(({ type }) => type === TYPE.OUTPUT)).toEqual([])
    // A run may be over a moment before its keeper is.
    for (const run of [1, 3, 4]) peer.send({ type: TYPE.KILL, run })
    for (const run of [1, 3, 4]) await peer.takeType(TYPE.GONE, run)
    expect(descendantsOf(peer.child.pid as number)).toEqual([])
  })

  testUnless(!hasBwrap && 'bwrap is not on PATH')('cannot be looked into by others of its id while it waits', async () => {
    await using peer = singleIdCell()
    const ids = { uid: 1000, gid: 1000 }
    const pid = await ready(peer, 1, ids)
    const host = hostPid(peer.child.pid as number, pid)
    expect(readlinkSync(`/proc/${host}/cwd`)).toBe('/')
    const look = ['mem', 'environ', 'fd', 'exe', 'cwd'].map(
      (name) => `cat /proc/${pid}/${name} >/dev/null 2>&1 || ls /proc/${pid}/${name}/ >/dev/null 2>&1 || echo ${name}`,
    )
    expect((await peer.run(2, { argv: ['sh', '-c', look.join('; ')], ...ids, cwd: '/workspace' })).stdout.toString()).toBe('mem\nenviron\nfd\nexe\ncwd\n')
    tell(peer, 1, { argv: ['echo', 'through'], cwd: '/workspace' })
    expect((await peer.collect(1)).stdout.toString()).toBe('through\n')
  })
})
