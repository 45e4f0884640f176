import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { hasBwrap, isRoot, singleIdCell } from './cells.js'
import { endingOf, filterOf, type Frame, Peer, type Start, TYPE, u32 } from './frames.js'
import { descendantsOf, hostPid } from './processes.js'
import { testUnless } from '../unless.js'

const shell = (script: string, more: Partial<Start> = {}): Start => ({ argv: ['sh', '-c', script], gate: true, ...more })
const failureOf = (frame: Frame) => ({ stage: frame.payload.readUInt32LE(0), errno: frame.payload.readUInt32LE(4), text: frame.payload.subarray(8).toString() })
const gatedPid = async (peer: Peer, run: number) => (await peer.takeType(TYPE.GATED, run)).payload.readUInt32LE(0)
const release = (peer: Peer, run: number) => peer.send({ type: TYPE.RELEASE, run })
const kill = (peer: Peer, run: number) => peer.send({ type: TYPE.KILL, run })
/** What was said of a run and not yet taken. */
const typesOf = (peer: Peer, run: number) => peer.frames.filter((frame) => frame.run === run).map((frame) => frame.type)

describe('at its gate', () => {
  test('nothing of a program has run; released, it runs with its arguments and its environment', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'warden-gate-'))
    try {
      const trace = join(folder, 'trace')
      await using peer = new Peer()
      peer.start(1, {
        argv: ['sh', '-c', 'echo "$V:$1:$(pwd)" >"$0"; echo said', trace, 'a b'],
        env: ['PATH=/usr/bin:/bin', 'V=x\ny'],
        cwd: folder,
        gate: true,
      })
      const pid = await gatedPid(peer, 1)
      await pause(150)
      expect([existsSync(trace), typesOf(peer, 1)]).toEqual([false, []])
      release(peer, 1)
      expect((await peer.takeType(TYPE.STARTED, 1)).payload).toEqual(u32(pid))
      const said = await peer.collect(1)
      expect([said.stdout.toString(), said.ending.kind, said.ending.code]).toEqual(['said\n', 0, 0])
      expect(readFileSync(trace, 'utf8')).toBe(`x\ny:a b:${folder}\n`)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('a program is all that it will be: no new privileges, its filter, its limits', async () => {
    await using peer = new Peer()
    peer.send({ type: TYPE.CONFIGURE, payload: filterOf([]) })
    peer.start(1, shell('grep -E "^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)" /proc/$$/status; cat /proc/$$/limits', { rlimits: [[7, 33n, 44n]] }))
    const pid = await gatedPid(peer, 1)
    const fields = /^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp).*\n/gm
    const found = (readFileSync(`/proc/${pid}/status`, 'utf8').match(fields) ?? []).join('') + readFileSync(`/proc/${pid}/limits`, 'utf8')
    release(peer, 1)
    expect(found).toBe((await peer.collect(1)).stdout.toString())
    expect(found).toMatch(/NoNewPrivs:\t1\nSeccomp:\t2\n[^]*Max open files +33 +44/)
  })

  testUnless(!hasBwrap && 'bwrap is not on PATH')('a program has one descriptor besides 0, 1 and 2, a socket that closes on exec', async () => {
    await using peer = singleIdCell()
    peer.send({ type: TYPE.RULES, payload: u32(0) })
    peer.start(1, shell('true', { uid: 1000, gid: 1000, cwd: '/workspace' }))
    const pid = hostPid(peer.child.pid as number, await gatedPid(peer, 1))
    // Not /proc/PID/fd, which the kernel shows to root alone for as long as the program cannot be looked into.
    const found = readdirSync(`/proc/${pid}/fdinfo`).map(
      (fd) => [fd, Number.parseInt(/^flags:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8'))?.[1] ?? '', 8)] as const,
    )
    expect(found.map(([fd, flags]) => [Number(fd) > 2 ? 'more' : fd, (flags & 0o2000000) !== 0])).toEqual([
      ['0', false],
      ['1', false],
      ['2', false],
      ['more', true],
    ])
    if (isRoot) expect(readlinkSync(`/proc/${pid}/fd/${found[3]?.[0]}`)).toMatch(/^socket:/)
    kill(peer, 1)
    await peer.takeType(TYPE.GONE, 1)
  })

  test('a kill ends a program without a start, and leaves nothing', async () => {
    await using peer = new Peer()
    peer.start(1, shell('echo ran', { stdin: true }))
    peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.from('never read') })
    await gatedPid(peer, 1)
    kill(peer, 1)
    release(peer, 1)
    await peer.takeType(TYPE.GONE, 1)
    expect(endingOf(await peer.takeType(TYPE.EXITED, 1))).toMatchObject({ kind: 1, code: 9 })
    expect(typesOf(peer, 1).filter((type) => type !== TYPE.CREDIT)).toEqual([])
    expect(descendantsOf(peer.child.pid as number)).toEqual([])
    release(peer, 1)
    expect((await peer.run(2, { argv: ['echo', 'next'] })).stdout.toString()).toBe('next\n')
  })

  test.each(['CLOSE', 'the end of stdin', 'SIGKILL to the warden'])('%s leaves nothing of a program', async (how) => {
    await using peer = new Peer()
    for (let run = 1; run <= 5; run++) peer.start(run, shell('sleep 60'))
    for (let run = 1; run <= 5; run++) await gatedPid(peer, run)
    const held = descendantsOf(peer.child.pid as number).map((row) => row.pid)
    expect(held).toHaveLength(10)
    if (how === 'CLOSE') peer.send({ type: TYPE.CLOSE })
    else if (how === 'the end of stdin') peer.stdin.end()
    else peer.child.kill('SIGKILL')
    await peer.exited
    await expect.poll(() => held.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([])
  })

  test('a keeper that is killed takes its program along, which never ran', async () => {
    await using peer = new Peer()
    peer.start(1, shell('echo ran'))
    const pid = await gatedPid(peer, 1)
    process.kill(descendantsOf(peer.child.pid as number).find((row) => row.pid === pid)?.parent as number, 'SIGKILL')
    expect(endingOf(await peer.takeType(TYPE.EXITED, 1)).kind).toBe(2)
    kill(peer, 1)
    await peer.takeType(TYPE.GONE, 1)
    expect(typesOf(peer, 1)).toEqual([])
    expect(descendantsOf(peer.child.pid as number)).toEqual([])
  })

  test('a program that another kills is told by that signal', async () => {
    await using peer = new Peer()
    peer.start(1, shell('echo ran'))
    process.kill(await gatedPid(peer, 1), 'SIGUSR1')
    expect(endingOf(await peer.takeType(TYPE.EXITED, 1))).toMatchObject({ kind: 1, code: 10 })
    release(peer, 1)
    expect((await peer.run(2, { argv: ['true'] })).ending.code).toBe(0)
    expect(typesOf(peer, 1)).toEqual([])
  })

  test('signals of the engine wait for nobody, and input waits for the program', async () => {
    await using peer = new Peer()
    peer.start(1, shell('cat', { stdin: true }))
    await gatedPid(peer, 1)
    peer.send({ type: TYPE.SIGNAL, run: 1, payload: u32(15) })
    peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.from('fed at the gate') })
    peer.send({ type: TYPE.STDIN, run: 1 })
    release(peer, 1)
    expect((await peer.collect(1)).stdout.toString()).toBe('fed at the gate')
  })

  test('a program that is stopped and goes on still waits', async () => {
    await using peer = new Peer()
    peer.start(1, shell('echo through'))
    const pid = await gatedPid(peer, 1)
    const state = () => /^State:\t(.)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    for (const [signal, reached] of [
      ['SIGSTOP', 'T'],
      ['SIGCONT', 'S'],
    ] as const) {
      process.kill(pid, signal)
      await expect.poll(state).toBe(reached)
    }
    expect(typesOf(peer, 1)).toEqual([])
    release(peer, 1)
    expect((await peer.collect(1)).stdout.toString()).toBe('through\n')
  })

  test('a hundred wait at once, and go in any order', async () => {
    await using peer = new Peer()
    const runs = Array.from({ length: 100 }, (_, index) => index + 1)
    for (const run of runs) peer.start(run, shell(`echo ${run}`))
    const pids = await Promise.all(runs.map((run) => gatedPid(peer, run)))
    expect(new Set(pids).size).toBe(100)
    for (const run of runs.filter((each) => each % 10 === 0)) kill(peer, run)
    for (const run of [...runs].reverse()) release(peer, run)
    const said = await Promise.all(runs.map((run) => (run % 10 === 0 ? peer.takeType(TYPE.GONE, run) : peer.collect(run))))
    expect(said.map((each) => ('stdout' in each ? each.stdout.toString() : 'killed'))).toEqual(runs.map((run) => (run % 10 === 0 ? 'killed' : `${run}\n`)))
  })

  test('a second RELEASE is malformed', async () => {
    await using peer = new Peer()
    peer.start(1, shell('sleep 60'))
    await gatedPid(peer, 1)
    release(peer, 1)
    release(peer, 1)
    expect((await peer.takeType(TYPE.FATAL)).payload.toString()).toMatch(/not at its gate/)
  })
})

describe('what fails', () => {
  test('before the gate is FAILED at once, what fails behind it after GATED', async () => {
    await using peer = new Peer()
    peer.start(1, shell('true', { cwd: '/nowhere' }))
    expect(failureOf(await peer.takeType(TYPE.FAILED, 1))).toEqual({ stage: 1, errno: 2, text: 'enter /nowhere' })
    expect(typesOf(peer, 1)).toEqual([])
    peer.start(2, { argv: ['/nowhere'], gate: true })
    await gatedPid(peer, 2)
    release(peer, 2)
    expect(failureOf(await peer.takeType(TYPE.FAILED, 2))).toEqual({ stage: 2, errno: 2, text: 'execute /nowhere' })
  })

  const [read, write] = process.arch === 'x64' ? [0, 1] : [63, 64]
  const [refuse, killProcess, trap] = [0x00050000, 0x80000000, 0x00030000]
  const failed = (errno: number) => ({ stage: 3, errno, text: 'wait at the gate' })

  test.each([
    ['read with EPERM', [[read, refuse | 1]], failed(1)],
    ['read with EINTR, without end', [[read, refuse | 4]], failed(4)],
    ['read, as if the gate were closed', [[read, refuse]], failed(32)],
    ['write with EACCES', [[write, refuse | 13]], failed(13)],
    ['write, as if nothing were written', [[write, refuse]], failed(5)],
    [
      'read and write',
      [
        [read, refuse | 1],
        [write, refuse | 2],
      ],
      failed(2),
    ],
    ['read by killing', [[read, killProcess]], 31],
    ['write by killing', [[write, killProcess]], 31],
    ['write by a trap', [[write, trap]], 31],
  ] as const)('under a filter that refuses %s ends in an answer', async (_name, refusals, answer) => {
    await using peer = new Peer()
    peer.send({ type: TYPE.CONFIGURE, payload: filterOf(refusals) })
    peer.start(1, shell('true'))
    const frame = await peer.take((each) => each.type === TYPE.FAILED || each.type === TYPE.EXITED)
    if (typeof answer === 'number') expect(endingOf(frame)).toMatchObject({ kind: 1, code: answer })
    else expect([frame.type, failureOf(frame)]).toEqual([TYPE.FAILED, answer])
    expect(typesOf(peer, 1).filter((type) => type !== TYPE.GATED)).toEqual([])
    kill(peer, 1)
    await peer.takeType(TYPE.GONE, 1)
    expect(descendantsOf(peer.child.pid as number)).toEqual([])
  })
})
