import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, lstatSync, readFileSync, readlinkSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { constants } from 'node:os'
import { afterEach, describe, expect, test } from 'vitest'
import { cliPath, collect, fake, parseAs, processesWith, startCli } from './cli.js'
import { filesAt, gone, isRunning, type LastingHome, lastingHome, until } from './lasting.js'

const homes: LastingHome[] = []
const makeHome = (options?: Parameters<typeof lastingHome>[0]): LastingHome => {
  const home = lastingHome(options)
  homes.push(home)
  return home
}

afterEach(async () => {
  for (const home of homes.splice(0)) await home[Symbol.asyncDispose]()
})

const started = async (home: LastingHome): Promise<number> => {
  await home.create()
  const pid = home.daemonPid()
  if (pid === undefined) throw new Error('there is no daemon')
  return pid
}

describe('the daemon', () => {
  test('is started by create and by nothing else', async () => {
    const home = makeHome()
    await home.cli(['ls'])
    await home.cli(['run', '-q', ...fake, '--', 'true'])
    expect(home.daemonPid()).toBeUndefined()
    await home.create()
    expect(home.daemonPid()).toBeTypeOf('number')
  })

  test('listens on a socket that only its user can open, in a folder that only they can enter', async () => {
    const home = makeHome()
    await started(home)
    expect([lstatSync(home.place.socket).mode & 0o777, lstatSync(home.place.folder).mode & 0o777, lstatSync(home.place.record).mode & 0o777]).toEqual([
      0o600, 0o700, 0o600,
    ])
    expect(lstatSync(home.place.socket).isSocket()).toBe(true)
  })

  test('keeps nothing of whoever started it: no stream, no folder, no session, no secret', async () => {
    const home = makeHome()
    const result = await home.cli(['create', '-q', ...fake], {
      env: { SECRET_TOKEN: 'do-not-keep', GLOVEBOX_KEY: 'nor-this', AWS_SECRET_ACCESS_KEY: 'nor-that' },
    })
    expect(result.code).toBe(0)
    const pid = home.daemonPid() ?? 0
    expect(readFileSync(`/proc/${pid}/environ`, 'latin1')).not.toMatch(/do-not-keep|nor-this|nor-that/)
    expect(readlinkSync(`/proc/${pid}/cwd`)).toBe('/')
    expect([0, 1, 2].map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))).toEqual(['/dev/null', '/dev/null', '/dev/null'])
    expect(existsSync(`/proc/${pid}/fd/3`) ? readlinkSync(`/proc/${pid}/fd/3`) : '').not.toMatch(/^pipe:/)
    const session = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ')[3]
    expect(session).toBe(String(pid))
  })

  test('does not hold a pipe open: create | cat ends', async () => {
    const home = makeHome()
    const child = spawn('sh', ['-c', `"$0" "$1" create -q ${fake.join(' ')} 2>&1 | cat`, process.execPath, cliPath], { env: { ...process.env, ...home.env } })
    const { code, stdout } = await collect(child)
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^[a-z0-9]{20}\n$/) as unknown })
    expect(home.daemonPid()).toBeTypeOf('number')
  })

  test('is one, however many creates begin at once', async () => {
    const home = makeHome()
    const ids = await Promise.all(Array.from({ length: 4 }, () => home.create()))
    expect(new Set(ids).size).toBe(4)
    expect((await home.cli(['ls', '-q'])).stdout.trim().split('\n').sort()).toEqual([...ids].sort())
    const daemons = processesWith(`${cliPath}\0daemon`).filter((pid) => readFileSync(`/proc/${pid}/environ`, 'latin1').includes(home.top))
    expect(daemons).toEqual([home.daemonPid()])
  })

  test('goes by itself when it holds nothing and nobody asks, and leaves no file', async () => {
    const home = makeHome({ idle: '500ms' })
    const pid = await started(home)
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(isRunning(pid)).toBe(true)
    await home.cli(['rm', '--all'])
    await gone(pid)
    expect(filesAt(home)).toEqual([])
    await home.create()
    expect(home.daemonPid()).not.toBe(pid)
  })

  test('told to stop closes what it holds', async () => {
    const home = makeHome()
    const pid = await started(home)
    const marker = `61.${process.pid}11`
    const id = (await home.cli(['ls', '-q'])).stdout.trim()
    await home.cli(['exec', '-d', id, '--', 'sleep', marker])
    expect(processesWith(marker)).not.toEqual([])
    process.kill(pid, 'SIGTERM')
    await gone(pid)
    expect([filesAt(home), processesWith(marker)]).toEqual([[], []])
  })

  test('killed leaves nothing after the next command, which says what became of its sandboxes', async () => {
    const home = makeHome()
    const pid = await started(home)
    const marker = `62.${process.pid}12`
    const id = (await home.cli(['ls', '-q'])).stdout.trim()
    await home.cli(['exec', '-d', id, '--', 'sleep', marker])
    process.kill(pid, 'SIGKILL')
    await gone(pid)
    const { code, stderr } = await home.cli(['exec', id, '--', 'true'])
    expect(code).toBe(125)
    expect(stderr).toMatch(
      /^glovebox: the daemon that was started .* was ended from outside, and the sandboxes that it held with it\nglovebox: there is no sandbox/,
    )
    expect(filesAt(home)).toEqual([])
    await until(() => processesWith(marker).length === 0, 'the end of what ran')
    expect((await home.cli(['ls'])).stderr).toBe('glovebox: there is no sandbox; create makes one\n')
  })

  test('whose socket is gone goes too: nobody could reach what it holds', async () => {
    const home = makeHome({ idle: '2s' })
    const pid = await started(home)
    rmSync(home.place.socket)
    await gone(pid)
    expect(filesAt(home)).toEqual([])
  })

  test('and an engine beside it leave each other alone', async () => {
    const home = makeHome()
    const id = await home.create()
    // --here is never the daemon's.
    const beside = await Promise.all(
      Array.from({ length: 3 }, () => home.cli(['run', '-q', ...fake, '--', 'echo', 'beside'], { env: { GLOVEBOX_SNAPSHOT_DIR: home.top } })),
    )
    expect(beside.map(({ stdout }) => stdout)).toEqual(['beside\n', 'beside\n', 'beside\n'])
    expect((await home.cli(['exec', id, '--', 'echo', 'on'])).stdout).toBe('on\n')
  })
})

describe('what is in its place', () => {
  test('a socket that nobody listens at is replaced', async () => {
    const home = makeHome()
    const pid = await started(home)
    // As of a daemon whose end nobody saw.
    process.kill(pid, 'SIGKILL')
    await gone(pid)
    expect(statSync(home.place.socket).isSocket()).toBe(true)
    const id = await home.create()
    expect((await home.cli(['ls', '-q'])).stdout).toBe(`${id}\n`)
  })

  test('a file that is no socket is refused', async () => {
    const home = makeHome()
    const pid = await started(home)
    process.kill(pid, 'SIGTERM')
    await gone(pid)
    writeFileSync(home.place.socket, '', { mode: 0o600 })
    expect(await home.cli(['create', ...fake])).toMatchObject({ code: 125, stderr: expect.stringContaining('may be somebody else') as unknown })
    rmSync(home.place.socket)
  })

  test('a socket that others may open is refused, whatever listens there', async () => {
    const home = makeHome()
    await started(home)
    chmodSync(home.place.socket, 0o666)
    for (const args of [['ls'], ['create', ...fake], ['run', ...fake, '--', 'true']]) {
      expect(await home.cli(args)).toMatchObject({ code: 125, stdout: '', stderr: expect.stringContaining('has mode 666') as unknown })
    }
    chmodSync(home.place.socket, 0o600)
  })

  test.runIf(process.getuid?.() === 0)("another user's socket is refused, and nothing is said to it", async () => {
    const home = makeHome()
    const pid = await started(home)
    process.kill(pid, 'SIGTERM')
    await gone(pid)
    let connections = 0
    const impostor = createServer((socket) => {
      connections += 1
      socket.destroy()
    }).listen(home.place.socket)
    await once(impostor, 'listening')
    chmodSync(home.place.socket, 0o600)
    const { chownSync } = await import('node:fs')
    chownSync(home.place.socket, 65_534, 65_534)
    for (const args of [['ls'], ['create', ...fake], ['run', ...fake, '--', 'true']]) {
      expect(await home.cli(args)).toMatchObject({ code: 125, stdout: '', stderr: expect.stringContaining('belongs to uid 65534') as unknown })
    }
    expect(connections).toBe(0)
    impostor.close()
    rmSync(home.place.socket, { force: true })
  })
})

describe('a daemon of another build', () => {
  const pretend = (home: LastingHome): void => {
    const record = parseAs<Record<string, string>>(readFileSync(home.place.record, 'utf8'))
    writeFileSync(`${home.place.record}.new`, JSON.stringify({ ...record, version: '0.0.1', identity: 'another' }))
    renameSync(`${home.place.record}.new`, home.place.record)
  }

  test('makes way for create when it holds nothing', async () => {
    const home = makeHome()
    const pid = await started(home)
    await home.cli(['rm', '--all'])
    pretend(home)
    await home.create()
    expect(isRunning(pid)).toBe(false)
    expect(home.daemonPid()).toBeTypeOf('number')
  })

  test('stays while it holds something: create is refused, the others go on and say so', async () => {
    const home = makeHome()
    const pid = await started(home)
    pretend(home)
    const refused = await home.cli(['create', ...fake])
    expect(refused).toMatchObject({
      code: 125,
      stderr: expect.stringMatching(/another build \(0\.0\.1\).*makes way when it holds nothing\nhint: glovebox rm --all\n$/) as unknown,
    })
    const listed = await home.cli(['ls', '-q'])
    expect(listed).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^[a-z0-9]{20}\n$/) as unknown,
      stderr: expect.stringContaining('another build') as unknown,
    })
    expect(isRunning(pid)).toBe(true)
    const { stdout, stderr } = await home.cli(['run', '-q', ...fake, '--', 'echo', 'own'])
    expect({ stdout, stderr }).toEqual({ stdout: 'own\n', stderr: '' })
  })
})

/** Whether it looks after signals itself; Node.js has handlers for others from its start, for this one it has none. */
function minds(pid: number): boolean {
  const caught = BigInt(`0x${/SigCgt:\s*([0-9a-f]+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? '0'}`)
  return ((caught >> BigInt(constants.signals.SIGHUP - 1)) & 1n) === 1n
}

describe('a signal in the middle', () => {
  const interrupted = async (home: LastingHome, args: readonly string[], signal: NodeJS.Signals): Promise<{ code: number | null; stderr: string }> => {
    const child = startCli(args, home.env)
    const result = collect(child)
    child.stdin.end()
    await until(() => minds(child.pid ?? 0), `${args[0]} to mind signals`)
    // In the middle of what it does, rather than of getting there.
    await new Promise((resolve) => setTimeout(resolve, 300))
    child.kill(signal)
    const { code, stderr } = await result
    return { code, stderr }
  }

  test('of exec is the program’s, and ends it; the sandbox stays', async () => {
    const home = makeHome()
    const id = await home.create()
    const marker = `63.${process.pid}13`
    expect(await interrupted(home, ['exec', id, '--', 'sleep', marker], 'SIGINT')).toEqual({ code: 130, stderr: '' })
    expect(await interrupted(home, ['exec', id, '--', 'sleep', marker], 'SIGTERM')).toEqual({ code: 143, stderr: '' })
    expect(await interrupted(home, ['exec', id, '--', 'sleep', marker], 'SIGHUP')).toEqual({ code: 129, stderr: '' })
    await until(() => processesWith(marker).length === 0, 'the end of the programs')
    expect((await home.cli(['exec', id, '--', 'echo', 'on'])).stdout).toBe('on\n')
  })

  test('of logs -f, stats -f and url --wait ends these and nothing else', async () => {
    const home = makeHome()
    const id = await home.create()
    const marker = `64.${process.pid}14`
    await home.cli(['exec', '-d', '--tag', 't', id, '--', 'sleep', marker])
    for (const args of [
      ['logs', '-f', id, 't'],
      ['stats', '-f', id],
      ['url', '--wait', '--', id, '9'],
    ]) {
      expect(await interrupted(home, args, 'SIGINT'), args.join(' ')).toEqual({ code: 130, stderr: '' })
    }
    expect(processesWith(marker)).not.toEqual([])
  })

  test('a run in the daemon that is killed leaves neither a program nor a sandbox; while it runs, nobody else finds it', async () => {
    const home = makeHome({ idle: '2s' })
    await home.create(['--lifetime', '20s'])
    const pid = home.daemonPid() ?? 0
    const marker = `66.${process.pid}16`
    const child = startCli(['run', '-q', ...fake, '--timeout', '1h', '--', 'sleep', marker], home.env)
    const result = collect(child)
    child.stdin.end()
    await until(() => processesWith(marker).some((each) => readFileSync(`/proc/${each}/cmdline`, 'latin1').startsWith('sleep')), 'the program')
    expect((await home.cli(['ls', '-q'])).stdout.trim().split('\n')).toHaveLength(1)
    expect((await home.cli(['rm', '--all'])).code).toBe(0)
    expect(processesWith(marker)).not.toEqual([])
    child.kill('SIGKILL')
    await result
    // With nothing left in it, the daemon goes.
    await gone(pid)
    expect([processesWith(marker), filesAt(home)]).toEqual([[], []])
  })

  test('a killed exec leaves no program running', async () => {
    const home = makeHome()
    const id = await home.create()
    const marker = `65.${process.pid}15`
    await interrupted(home, ['exec', id, '--', 'sleep', marker], 'SIGKILL')
    await until(() => processesWith(marker).length === 0, 'the end of the program')
  })
})
