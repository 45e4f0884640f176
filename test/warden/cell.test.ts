import { describe, expect, test } from 'vitest'
import { hasBwrap, isRoot, ManyIdCell, singleIdCell } from './cells.js'
import { type Peer, type Start, TYPE, u32 } from './frames.js'
import { forkBomb } from './processes.js'
import { skipGroup, testUnless } from '../unless.js'

const ids = { uid: 1000, gid: 1000 }
const shell = (script: string, more: Partial<Start> = {}): Start => ({ argv: ['sh', '-c', script], ...ids, cwd: '/workspace', ...more })
const said = async (peer: Peer, run: number, start: Start) => {
  const { stdout, stderr } = await peer.run(run, start)
  return Buffer.concat([stdout, stderr]).toString()
}
const noCapabilities = ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map((set) => `Cap${set}:\t${'0'.repeat(16)}\n`).join('')
const status = 'grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status'

const asCell = (peer: Peer) => ({ peer, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() })

const cells: readonly (readonly [name: string, able: boolean, open: () => Promise<AsyncDisposable & { peer: Peer }>])[] = [
  ['one id', hasBwrap, () => Promise.resolve(asCell(singleIdCell()))],
  ['ids of its own', hasBwrap && isRoot, () => ManyIdCell.open()],
]

describe.each(cells)('in a cell with %s', (name, able, open) => {
  const inCell = (promise: string, run: (peer: Peer) => Promise<void>) =>
    testUnless(!able && 'needs bwrap, and root for ids of its own')(promise, async () => {
      await using cell = await open()
      await run(cell.peer)
    })

  inCell('a guest has no capability in any set, no new privileges, and a filter', async (peer) => {
    expect(await said(peer, 1, shell(status))).toBe(`${noCapabilities}NoNewPrivs:\t1\nSeccomp:\t2\n`)
  })

  inCell('a guest sees nothing of the command that started the warden, nor of its memory, descriptors and environment', async (peer) => {
    const script = `tr -d '\\0' </proc/1/cmdline; tr -d '\\0' </proc/$PPID/cmdline; for p in 1 $PPID; do for f in environ maps mem fd/0 exe cwd; do
      { cat /proc/$p/$f || ls /proc/$p/fd/; } >/dev/null 2>&1 && echo read /proc/$p/$f; done; ls /proc/$p/fd >/dev/null 2>&1 && echo listed $p; done; cat /proc/$$/maps >/dev/null && echo control`
    expect(await said(peer, 1, shell(script))).toBe('control\n')
  })

  inCell('a guest has exactly the descriptors 0, 1 and 2, and can open what they are', async (peer) => {
    const script = 'for fd in $(seq 0 9999); do [ -e /proc/$$/fd/$fd ] && printf "%s " $fd; done; echo through >/dev/stdout; cat /dev/stdin'
    peer.start(1, shell(script, { stdin: true }))
    peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.from('fed') })
    peer.send({ type: TYPE.STDIN, run: 1 })
    expect((await peer.collect(1)).stdout.toString()).toBe('0 1 2 through\nfed')
  })

  inCell('the warden outlives every signal of a guest', async (peer) => {
    await said(peer, 1, shell('for s in $(seq 1 64); do kill -$s 1; done; true'))
    expect(await said(peer, 2, shell('echo alive'))).toBe('alive\n')
  })

  inCell('mounts, tracing and keys are refused by the filter of the warden itself', async (peer) => {
    const script = `import ctypes,os
libc=ctypes.CDLL(None,use_errno=True)
for name,number in (("mount",165),("ptrace",101),("keyctl",250),("bpf",321),("setns",308),("io_uring",425)) if os.uname().machine=="x86_64" else (("mount",40),("ptrace",117),("keyctl",219),("bpf",280),("setns",268),("io_uring",425)):
  libc.syscall(number,0,0,0,0,0); print(name,ctypes.get_errno())`
    expect(await said(peer, 1, { argv: ['/usr/bin/python3', '-c', script], ...ids })).toBe(
      ['mount', 'ptrace', 'keyctl', 'bpf', 'setns', 'io_uring'].map((call) => `${call} 1\n`).join(''),
    )
  })

  inCell('namespaces and odd sockets are refused by the filter of the warden itself, while processes and everyday sockets are not', async (peer) => {
    const script = `import ctypes,os
libc=ctypes.CDLL(None,use_errno=True)
unshare,clone,socket,pair=(272,56,41,53) if os.uname().machine=="x86_64" else (97,220,198,199)
def call(number,*arguments):
  ctypes.set_errno(0); result=libc.syscall(number,*arguments,0,0,0,0)
  if number==clone and result==0: os._exit(0)
  return ctypes.get_errno()
flags=(0x20000,0x2000000,0x4000000,0x8000000,0x10000000,0x20000000,0x40000000)
print("unshare",{call(unshare,flag) for flag in (0x80,*flags)},"clone",{call(clone,flag|17) for flag in flags},call(clone,17),"clone3",call(435))
print("families",[n for n in range(64) if call(socket,n,1,0)!=97 and call(socket,n,2,0)!=97],"pairs",call(pair,40,1,0),os.waitpid(-1,0)[1])`
    expect(await said(peer, 1, { argv: ['/usr/bin/python3', '-c', script], ...ids })).toBe(
      'unshare {1} clone {1} 0 clone3 38\nfamilies [1, 2, 10, 16] pairs 97 0\n',
    )
  })

  inCell('the writable folders share one sized disk, and nothing else can be written', async (peer) => {
    const script = `stat -c '%U %a' /workspace /tmp | sed s/UNKNOWN/user/; touch /x /dev/x /proc/sys/x 2>/dev/null; ls -d /x /dev/x 2>/dev/null
      head -c 700000 /dev/zero >/workspace/a && echo first; head -c 700000 /dev/zero >/tmp/b 2>/dev/null || echo full; rm /workspace/a /tmp/b
      i=0; while touch /tmp/$i 2>/dev/null; do i=$((i+1)); done; [ $i -lt 64 ] && echo counted; echo x 2>/dev/null >/proc/sys/kernel/hostname || echo closed; [ -s /proc/timer_list ] || echo masked; ls -A /proc/acpi 2>/dev/null; cat /.warden`
    expect(await said(peer, 1, shell(script))).toBe('user 750\nuser 1777\nfirst\nfull\ncounted\nclosed\nmasked\n')
  })

  inCell('a kill leaves nothing but the warden in the cell', async (peer) => {
    peer.start(1, { argv: forkBomb(), ...ids, rlimits: [[6, 120n, 120n]] })
    await peer.takeType(TYPE.OUTPUT, 1)
    peer.send({ type: TYPE.KILL, run: 1 })
    await peer.takeType(TYPE.GONE, 1)
    const rest = (await said(peer, 2, shell('echo $$ $PPID; for p in /proc/[0-9]*; do echo ${p#/proc/}; done', { stdin: true }))).split('\n')
    const [program, keeper] = rest[0]?.split(' ') ?? []
    expect(rest.slice(1, -1).sort()).toEqual(['1', keeper, program].sort())
  })

  inCell('CLOSE ends the cell with all that is in it', async (peer) => {
    await peer.run(1, shell('sleep 60 >/dev/null 2>&1 &'))
    peer.send({ type: TYPE.CLOSE })
    expect(await peer.exited).toBe(0)
  })

  inCell('a filter that CONFIGURE brought holds for the guest', async (peer) => {
    const uname = process.arch === 'x64' ? 63 : 160
    const instruction = (code: number, jump: number, k: number) => Buffer.concat([Buffer.from([code, 0, jump & 255, jump >> 8]), u32(k)])
    const filter = Buffer.concat([
      instruction(0x20, 0, 0),
      instruction(0x15, 0x0100, uname),
      instruction(0x06, 0, 0x00050026),
      instruction(0x06, 0, 0x7fff0000),
    ])
    peer.send({ type: TYPE.CONFIGURE, payload: filter })
    expect(await said(peer, 1, shell('uname 2>&1; echo rest'))).toMatch(/not implemented\nrest\n$/)
  })
})

describe('where guests have the id of the warden', () => {
  skipGroup(!hasBwrap && 'bwrap is not on PATH')
  const rest = async (peer: Peer, run: number) => (await said(peer, run, shell('echo /proc/[0-9]*'))).trim().split(' ')

  test('a killed keeper takes its run with it', async () => {
    await using peer = singleIdCell()
    peer.start(1, shell('(setsid sleep 60 >/dev/null 2>&1 &); echo ready; kill -9 $PPID; sleep 60'))
    expect((await peer.collect(1)).ending.kind).toBe(2)
    peer.send({ type: TYPE.KILL, run: 1 })
    await peer.takeType(TYPE.GONE, 1)
    expect((await said(peer, 2, shell('echo /proc/[0-9]*'))).trim().split(' ')).toHaveLength(3)
  })

  test('a fork bomb that first killed its keeper is swept away', async () => {
    await using peer = singleIdCell()
    peer.start(1, { argv: forkBomb('os.getpid() % 50 or os.kill(keeper, 9)'), ...ids, rlimits: [[6, 120n, 120n]] })
    expect((await peer.collect(1)).ending.kind).toBe(2)
    peer.send({ type: TYPE.KILL, run: 1 })
    await peer.takeType(TYPE.GONE, 1)
    expect(await rest(peer, 2)).toHaveLength(3)
  })

  test('a fork bomb that wakes its keeper again and again is killed', async () => {
    await using peer = singleIdCell()
    peer.start(1, { argv: forkBomb('os.kill(keeper, signal.SIGCONT)'), ...ids, rlimits: [[6, 120n, 120n]] })
    await peer.takeType(TYPE.OUTPUT, 1)
    peer.send({ type: TYPE.KILL, run: 1 })
    await peer.takeType(TYPE.GONE, 1)
    expect(await rest(peer, 2)).toHaveLength(3)
  })

  test('a guest cannot end the warden by its limits, but sets its own', async () => {
    await using peer = singleIdCell()
    const script = `import os,resource
for pid in (1, os.getppid()):
  try: resource.prlimit(pid, resource.RLIMIT_CPU, (0, 0)); print("set")
  except PermissionError: print("refused")
print(len(resource.prlimit(os.getpid(), resource.RLIMIT_CPU)))
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)); print(resource.getrlimit(resource.RLIMIT_NOFILE))`
    expect(await said(peer, 1, { argv: ['/usr/bin/python3', '-c', script], ...ids })).toBe('refused\nrefused\n2\n(20, 20)\n')
  })
})

describe('with ids of its own', () => {
  skipGroup((!hasBwrap || !isRoot) && 'needs bwrap, and root for ids of its own')
  test('a guest can signal neither the warden nor its keeper', async () => {
    await using cell = await ManyIdCell.open()
    const script = 'for p in 1 $PPID; do kill -9 $p 2>/dev/null && echo hit $p; kill -0 $p 2>/dev/null && echo seen $p; done; kill -9 -1; echo control'
    expect(await said(cell.peer, 1, shell(`sleep 60 & ${script}; kill -0 $! 2>/dev/null || true`))).toBe('control\n')
    expect(await said(cell.peer, 2, shell(script.replace('kill -9 -1; ', '')))).toBe('control\n')
  })

  test('root in the cell has exactly the capabilities it was given, and not those of the warden', async () => {
    await using cell = await ManyIdCell.open()
    const mask = '000000000000000b'
    const expected = `CapInh:\t${'0'.repeat(16)}\nCapPrm:\t${mask}\nCapEff:\t${mask}\nCapBnd:\t${mask}\nCapAmb:\t${'0'.repeat(16)}\nNoNewPrivs:\t1\nSeccomp:\t2\n`
    expect(await said(cell.peer, 1, shell(`id -u; ${status}`, { uid: 0, gid: 0, capabilities: 0xbn }))).toBe(`0\n${expected}`)
    expect(
      await said(
        cell.peer,
        2,
        shell('kill -9 1 $PPID 2>/dev/null; cat /proc/1/environ /proc/$PPID/maps 2>/dev/null; touch /tmp/mine && chown 1000 /tmp/mine && echo chowned', {
          uid: 0,
          gid: 0,
          capabilities: 0xbn,
        }),
      ),
    ).toBe('chowned\n')
  })

  test('a capability that the warden was not given cannot be given on', async () => {
    await using cell = await ManyIdCell.open()
    cell.peer.start(1, shell('true', { uid: 0, gid: 0, capabilities: 1n << 21n }))
    const failed = await cell.peer.takeType(TYPE.FAILED, 1)
    expect([failed.payload.readUInt32LE(0), failed.payload.readUInt32LE(4), failed.payload.subarray(8).toString()]).toEqual([3, 1, 'set capabilities'])
  })

  test('a warden that could not empty a bounding set starts no guest', async () => {
    await using cell = await ManyIdCell.open(['SYS_ADMIN', 'SETUID', 'SETGID', 'KILL', 'CHOWN'])
    cell.peer.start(1, shell('true'))
    expect((await cell.peer.takeType(TYPE.FAILED, 1)).payload.subarray(8).toString()).toBe('drop capabilities from the bounding set')
  })
})
