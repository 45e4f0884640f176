import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Frame, Peer, type Start, TYPE, u32, WINDOW } from './frames.js'

const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const shell = (script: string, more: Partial<Start> = {}): Start => ({ argv: ['sh', '-c', script], ...more })
const failureOf = (frame: Frame) => ({ stage: frame.payload.readUInt32LE(0), errno: frame.payload.readUInt32LE(4), text: frame.payload.subarray(8).toString() })

test('HELLO names the version and the window', async () => {
  await using peer = new Peer()
  expect((await peer.takeType(TYPE.HELLO)).payload).toEqual(u32(4, WINDOW))
})

test('a program is started, heard on both streams, and its exit code told', async () => {
  await using peer = new Peer()
  const said = await peer.run(1, shell('echo out; echo err >&2; exit 7'))
  expect([said.stdout.toString(), said.stderr.toString(), said.ending.kind, said.ending.code]).toEqual(['out\n', 'err\n', 0, 7])
})

test('STARTED tells the pid, and a signal is told as one', async () => {
  await using peer = new Peer()
  peer.start(1, shell('echo $$; exec sleep 60'))
  const pid = (await peer.takeType(TYPE.STARTED, 1)).payload.readUInt32LE(0)
  expect(Number((await peer.take((frame) => frame.type === TYPE.OUTPUT && frame.payload.length > 0)).payload)).toBe(pid)
  peer.send({ type: TYPE.SIGNAL, run: 1, payload: u32(15) })
  expect((await peer.collect(1)).ending).toMatchObject({ kind: 1, code: 15 })
})

test('bytes come back exactly: 8 MiB of noise through cat', async () => {
  await using peer = new Peer()
  const noise = randomBytes(8 * 1024 * 1024)
  peer.start(1, { argv: ['cat'], stdin: true })
  const echoed = peer.collect(1)
  let credit = WINDOW
  for (let at = 0; at < noise.length; ) {
    while (credit === 0) credit += (await peer.takeType(TYPE.CREDIT, 1)).payload.readUInt32LE(0)
    const piece = noise.subarray(at, at + Math.min(credit, 50_000))
    credit -= piece.length
    at += piece.length
    peer.send({ type: TYPE.STDIN, run: 1, payload: piece })
  }
  peer.send({ type: TYPE.STDIN, run: 1 })
  expect(digest((await echoed).stdout)).toBe(digest(noise))
})

test('what a program prints in the shape of frames stays its output', async () => {
  await using peer = new Peer()
  const said = await peer.run(1, shell(`printf '\\040\\000\\000\\000\\043\\000\\000\\000\\001\\000\\000\\000%032d' 0; exit 3`))
  expect(said.stdout.length).toBe(44)
  expect(said.ending.code).toBe(3)
})

test('argv, environment and cwd are exactly those given', async () => {
  await using peer = new Peer()
  const argument = `a b\n"'$(x)\\${'é'.repeat(5000)}`
  const said = await peer.run(1, { argv: ['/usr/bin/printf', '%s', argument], env: [] })
  expect(said.stdout.toString()).toBe(argument)
  const environment = await peer.run(2, { argv: ['/usr/bin/env', '-0'], env: ['A=1', 'B=x=y\nz', 'A=2'], cwd: '/usr' })
  expect(environment.stdout.toString()).toBe('A=1\0B=x=y\nz\0A=2\0')
  expect((await peer.run(3, { argv: ['/bin/pwd'], cwd: '/usr/bin' })).stdout.toString()).toBe('/usr/bin\n')
})

test('a program has exactly the descriptors 0, 1 and 2, no blocked and no ignored signal, and a session of its own', async () => {
  await using peer = new Peer()
  const said = await peer.run(
    1,
    shell('for fd in $(seq 0 9999); do [ -e /proc/$$/fd/$fd ] && printf "%s " $fd; done; echo; grep -E "^Sig[BI]" /proc/self/status; cat /proc/$$/stat'),
  )
  const lines = said.stdout.toString().trimEnd().split('\n')
  expect(lines[0]).toBe('0 1 2 ')
  expect(lines.slice(1, 3)).toEqual([`SigBlk:\t${'0'.repeat(16)}`, `SigIgn:\t${'0'.repeat(16)}`])
  const [pid, , , , group, session] = lines[3]?.split(' ') ?? []
  expect([group, session]).toEqual([pid, pid])
})

test('rlimits hold, and an impossible one is a failure of the set-up', async () => {
  await using peer = new Peer()
  expect(
    (
      await peer.run(
        1,
        shell('ulimit -n; ulimit -c', {
          rlimits: [
            [7, 33n, 44n],
            [4, 0n, 0n],
          ],
        }),
      )
    ).stdout.toString(),
  ).toBe('33\n0\n')
  peer.start(2, shell('true', { rlimits: [[7, 44n, 33n]] }))
  expect(failureOf(await peer.takeType(TYPE.FAILED, 2))).toEqual({ stage: 3, errno: 22, text: 'set rlimit' })
})

test('what cannot be started says at which stage and why', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'warden-'))
  try {
    chmodSync(folder, 0o755)
    writeFileSync(join(folder, 'plain'), 'x', { mode: 0o644 })
    writeFileSync(join(folder, 'noise'), 'x', { mode: 0o755 })
    await using peer = new Peer()
    const failures = [
      [{ argv: ['no-such-program'] }, { stage: 2, errno: 2, text: 'execute no-such-program' }],
      [
        { argv: ['sh'], env: [] },
        { stage: 2, errno: 2, text: 'execute sh' },
      ],
      [{ argv: [''] }, { stage: 2, errno: 2, text: 'execute ' }],
      [
        { argv: ['plain'], env: [`PATH=/nowhere:${folder}:/usr`] },
        { stage: 2, errno: 13, text: 'execute plain' },
      ],
      [{ argv: [join(folder, 'noise')] }, { stage: 2, errno: 8, text: `execute ${folder}/noise` }],
      [
        { argv: ['true'], cwd: '/nowhere' },
        { stage: 1, errno: 2, text: 'enter /nowhere' },
      ],
      [
        { argv: ['true'], cwd: '/proc/self/fd/3' },
        { stage: 1, errno: 2, text: 'enter /proc/self/fd/3' },
      ],
    ] as const
    for (const [index, [start, failure]] of failures.entries()) {
      peer.start(index + 1, start)
      expect(failureOf(await peer.takeType(TYPE.FAILED, index + 1))).toEqual(failure)
    }
    expect((await peer.run(99, { argv: ['true'] })).ending).toMatchObject({ kind: 0, code: 0 })
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('frames for a run that is over are ignored', async () => {
  await using peer = new Peer()
  await peer.run(1, { argv: ['true'] })
  peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.from('late') })
  peer.send({ type: TYPE.SIGNAL, run: 1, payload: u32(9) })
  peer.send({ type: TYPE.CREDIT, run: 1, stream: 1, payload: u32(5) })
  peer.send({ type: TYPE.KILL, run: 1 })
  await peer.takeType(TYPE.GONE, 1)
  expect((await peer.run(2, { argv: ['true'] })).ending.code).toBe(0)
})

test('a background process does not hold the end of the run back, and what was printed before is there', async () => {
  await using peer = new Peer()
  const said = await peer.run(1, shell('sleep 60 & echo last'))
  expect(said.stdout.toString()).toBe('last\n')
  expect(said.ending.code).toBe(0)
})

test('a program that closed its output is not over until it exits', async () => {
  await using peer = new Peer()
  peer.start(1, shell('exec >&- 2>&-; read line; exit 5', { stdin: true }))
  const ends = [await peer.takeType(TYPE.OUTPUT, 1), await peer.takeType(TYPE.OUTPUT, 1)]
  expect(ends.map((frame) => [frame.stream, frame.payload.length]).sort()).toEqual([
    [1, 0],
    [2, 0],
  ])
  expect(peer.frames.some((frame) => frame.type === TYPE.EXITED)).toBe(false)
  peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.from('go\n') })
  expect((await peer.collect(1)).ending.code).toBe(5)
})

test('four hundred runs one after another, and twenty at once, leave no process and no descriptor', async () => {
  await using peer = new Peer()
  for (let run = 1; run <= 400; run++) expect((await peer.run(run, { argv: ['true'] })).ending.code).toBe(0)
  const many = await Promise.all(Array.from({ length: 20 }, (_, index) => peer.run(1000 + index, shell(`echo ${index}`))))
  expect(many.map((said) => said.stdout.toString())).toEqual(Array.from({ length: 20 }, (_, index) => `${index}\n`))
  peer.send({ type: TYPE.KILL, run: 400 })
  await peer.takeType(TYPE.GONE, 400)
  // A keeper is told gone a moment before the warden has reaped it: what must not be is that it stays.
  let run = 5000
  const children = async (): Promise<string[]> => {
    const warden = '$(cut -d" " -f4 /proc/$PPID/stat)'
    const said = await peer.run(run++, shell(`cat /proc/${warden}/task/*/children`))
    return said.stdout.toString().trim().split(' ')
  }
  await expect.poll(children).toHaveLength(1)
})
