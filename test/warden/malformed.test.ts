import { describe, expect, test } from 'vitest'
import { encode, Peer, rulesPayload, startPayload, str, toldPayload, TYPE, u32, u64, WARDEN, WINDOW } from './frames.js'

const start = (run: number, payload = startPayload({ argv: ['sleep', '60'], stdin: true })) => encode({ type: TYPE.START, run, payload })
const head = (flags = 0, uid = 0) => Buffer.concat([u32(flags, uid, 0), u64(0n)])
const rules = (list: Parameters<typeof rulesPayload>[0]) => encode({ type: TYPE.RULES, payload: rulesPayload(list) })
const connect = (run: number, port = 1) => encode({ type: TYPE.CONNECT, run, payload: Buffer.from([port, 0]) })
const whole = startPayload({ argv: ['true'] })
const later = startPayload({ argv: [], later: true })
const release = (run: number, told: Parameters<typeof toldPayload>[0], behind = Buffer.alloc(0)) =>
  encode({ type: TYPE.RELEASE, run, payload: Buffer.concat([toldPayload(told), behind]) })

const cases: readonly (readonly [name: string, bytes: Buffer, says: RegExp])[] = [
  ['an unknown type', encode({ type: 0x55 }), /unknown frame type/],
  ['a type that only the warden sends', encode({ type: TYPE.EXITED, run: 1, payload: Buffer.alloc(48) }), /unknown frame type/],
  ['a reserved field', encode({ type: TYPE.CLOSE, reserved: 1 }), /reserved/],
  ['a KILL with a payload', encode({ type: TYPE.KILL, run: 1, payload: u32(1) }), /length/],
  ['a SIGNAL cut short', encode({ type: TYPE.SIGNAL, run: 1, payload: Buffer.alloc(3) }), /length/],
  ['a STDIN too long, before its bytes come', encode({ type: TYPE.STDIN, run: 1, length: 262145 }), /length/],
  ['a START too long, before its bytes come', encode({ type: TYPE.START, run: 1, length: 4 * 1024 * 1024 + 1 }), /length/],
  ['a length of 4 GiB', encode({ type: TYPE.STDIN, run: 1, length: 0xffffffff }), /length/],
  ['a filter of no whole instructions', encode({ type: TYPE.CONFIGURE, payload: Buffer.alloc(12) }), /length/],
  ['a second CONFIGURE', Buffer.concat([encode({ type: TYPE.CONFIGURE }), encode({ type: TYPE.CONFIGURE })]), /second CONFIGURE/],
  ['a CONFIGURE after START', Buffer.concat([start(1), encode({ type: TYPE.CONFIGURE })]), /CONFIGURE after START/],
  ['a second RULES', Buffer.concat([rules([]), rules([])]), /second RULES/],
  ['RULES after START', Buffer.concat([start(1), rules([])]), /RULES after START/],
  ['RULES of one run', encode({ type: TYPE.RULES, run: 1, payload: u32(0) }), /wrong run id/],
  ['RULES without a count', encode({ type: TYPE.RULES, payload: Buffer.alloc(3) }), /length/],
  ['RULES too long, before its bytes come', encode({ type: TYPE.RULES, length: 4 * 1024 * 1024 + 1 }), /length/],
  ['RULES with fewer rules than it says', encode({ type: TYPE.RULES, payload: u32(1) }), /cut short/],
  ['RULES with a path cut short', encode({ type: TYPE.RULES, payload: Buffer.concat([u32(1, 3, 5), Buffer.from('/usr')]) }), /cut short/],
  ['RULES with more behind', encode({ type: TYPE.RULES, payload: Buffer.concat([rulesPayload([[3, '/usr']]), u32(0)]) }), /after its end/],
  ['RULES with no access', rules([[0, '/usr']]), /unknown access/],
  ['RULES with an unknown access', rules([[8, '/usr']]), /unknown access/],
  ['RULES for a path that is not from the root', rules([[3, 'usr']]), /begin with/],
  ['RULES for no path', rules([[3, '']]), /begin with/],
  ['RULES for too long a path', rules([[3, `/${'x'.repeat(4095)}`]]), /too long a path/],
  ['a NUL in a path of RULES', rules([[3, '/a\0b']]), /NUL/],
  ['RELEASE that tells what was told', Buffer.concat([start(1, startPayload({ argv: ['true'], gate: true })), release(1, { argv: ['true'] })]), /was told/],
  ['RELEASE that tells nothing of what was left for later', Buffer.concat([start(1, later), encode({ type: TYPE.RELEASE, run: 1 })]), /cut short/],
  ['RELEASE without arguments', Buffer.concat([start(1, later), release(1, { argv: [] })]), /no argument/],
  ['RELEASE with a variable without a name', Buffer.concat([start(1, later), release(1, { argv: ['true'], env: ['=x'] })]), /without a name/],
  ['RELEASE with a NUL in its folder', Buffer.concat([start(1, later), release(1, { argv: ['true'], cwd: '/\0' })]), /NUL/],
  ['RELEASE with more behind', Buffer.concat([start(1, later), release(1, { argv: ['true'] }, Buffer.alloc(1))]), /after its end/],
  ['RELEASE on its way to the gate', Buffer.concat([start(1, later), release(1, { argv: ['true'] })]), /not at its gate/],
  ['RELEASE too long, before its bytes come', encode({ type: TYPE.RELEASE, run: 1, length: 32769 }), /length/],
  ['RELEASE of no run', encode({ type: TYPE.RELEASE }), /wrong run id/],
  ['RELEASE of a run that was never started', encode({ type: TYPE.RELEASE, run: 9 }), /never started/],
  ['RELEASE of a run without a gate', Buffer.concat([start(1), encode({ type: TYPE.RELEASE, run: 1 })]), /not at its gate/],
  [
    'RELEASE of a run that is still on its way to the gate',
    Buffer.concat([start(1, startPayload({ argv: ['sleep', '60'], gate: true })), encode({ type: TYPE.RELEASE, run: 1 })]),
    /not at its gate/,
  ],
  ['RESIZE of a run without a terminal', Buffer.concat([start(1), encode({ type: TYPE.RESIZE, run: 1, payload: u32(0x00500018) })]), /without a terminal/],
  ['RESIZE of a run that was never started', encode({ type: TYPE.RESIZE, run: 1, payload: u32(0x00500018) }), /never started/],
  ['RESIZE to no rows', encode({ type: TYPE.RESIZE, run: 1, payload: u32(0x00500000) }), /wrong size/],
  ['RESIZE to 4097 columns', encode({ type: TYPE.RESIZE, run: 1, payload: u32(0x10010018) }), /wrong size/],
  ['RESIZE cut short', encode({ type: TYPE.RESIZE, run: 1, payload: Buffer.alloc(3) }), /length/],
  ['RESIZE for stderr', encode({ type: TYPE.RESIZE, run: 1, stream: 2, payload: u32(0x00500018) }), /wrong stream/],
  ['CONNECT to port 0', connect(1, 0), /wrong port/],
  ['CONNECT without a port', encode({ type: TYPE.CONNECT, run: 1 }), /length/],
  ['CONNECT with more than a port', encode({ type: TYPE.CONNECT, run: 1, payload: u32(80) }), /length/],
  ['CONNECT of no run', connect(0), /wrong run id/],
  ['CONNECT with a used id', Buffer.concat([start(1), connect(1)]), /used run id/],
  ['START with the id of a connection', Buffer.concat([connect(1), start(1)]), /used run id/],
  ['CONNECT with an id of the warden', connect(0x80000000), /used run id/],
  ['START with an id of the warden', start(0x80000000), /used run id/],
  ['LISTEN in a cell without direct doors', encode({ type: TYPE.LISTEN, payload: Buffer.from([80, 0]) }), /without direct doors/],
  ['LISTEN at port 0', encode({ type: TYPE.LISTEN, payload: Buffer.from([80, 0, 0, 0]) }), /wrong port/],
  ['LISTEN at half a port', encode({ type: TYPE.LISTEN, payload: Buffer.from([80]) }), /length/],
  ['LISTEN at more than 64 ports', encode({ type: TYPE.LISTEN, payload: Buffer.alloc(130, 1) }), /length/],
  ['LISTEN of a run', encode({ type: TYPE.LISTEN, run: 1 }), /wrong run id/],
  ['ANSWER to what was never asked', encode({ type: TYPE.ANSWER, run: 0x80000000 }), /never asked/],
  ['ANSWER to a run', Buffer.concat([start(1), encode({ type: TYPE.ANSWER, run: 1 })]), /never asked/],
  ['ANSWER beyond 4,096 bytes', encode({ type: TYPE.ANSWER, run: 0x80000000, payload: Buffer.alloc(4097) }), /length/],
  ['a frame for a connection that was never taken in', encode({ type: TYPE.STDIN, run: 0x80000000 }), /never started/],
  ['ACCEPTED, which only the warden sends', encode({ type: TYPE.ACCEPTED, run: 1, payload: Buffer.alloc(20) }), /unknown frame type/],
  ['CONNECTED, which only the warden sends', encode({ type: TYPE.CONNECTED, run: 1 }), /unknown frame type/],
  ['CLOSED, which only the warden sends', encode({ type: TYPE.CLOSED, run: 1, payload: u32(0) }), /unknown frame type/],
  ['a stream where there is none', encode({ type: TYPE.STDIN, run: 1, stream: 1 }), /wrong stream/],
  ['a credit for stdin', encode({ type: TYPE.CREDIT, run: 1, stream: 0, payload: u32(1) }), /wrong stream/],
  ['a credit for stream 4', encode({ type: TYPE.CREDIT, run: 1, stream: 4, payload: u32(1) }), /wrong stream/],
  ['a credit for the aside of a run without one', Buffer.concat([start(1), encode({ type: TYPE.CREDIT, run: 1, stream: 3, payload: u32(0) })]), /aside/],
  ['a run id of 0', encode({ type: TYPE.KILL }), /wrong run id/],
  ['a CLOSE of one run', encode({ type: TYPE.CLOSE, run: 1 }), /wrong run id/],
  ['a signal 0', Buffer.concat([start(1), encode({ type: TYPE.SIGNAL, run: 1, payload: u32(0) })]), /signal number/],
  ['a signal 65', Buffer.concat([start(1), encode({ type: TYPE.SIGNAL, run: 1, payload: u32(65) })]), /signal number/],
  ['a used id', Buffer.concat([start(1), start(1)]), /used run id/],
  ['an id used by a run that failed', Buffer.concat([start(7, startPayload({ argv: ['/nowhere'] })), start(7)]), /used run id/],
  ['a run that was never started', encode({ type: TYPE.STDIN, run: 9, payload: u32(1) }), /never started/],
  ['credit beyond the window', Buffer.concat([start(1), encode({ type: TYPE.CREDIT, run: 1, stream: 1, payload: u32(1) })]), /credit beyond/],
  ['an empty START', encode({ type: TYPE.START, run: 1 }), /length/],
  ['a START cut short', start(1, whole.subarray(0, whole.length - 1)), /cut short/],
  ['a START with more behind', start(1, Buffer.concat([whole, Buffer.alloc(1)])), /after its end/],
  ['a START with unknown flags', start(1, Buffer.concat([head(1024), whole.subarray(20)])), /unknown flags/],
  ['an aside without input', start(1, Buffer.concat([head(64), whole.subarray(20)])), /aside without input/],
  ['an aside at a terminal', start(1, Buffer.concat([head(69), whole.subarray(20), u32(0x00500018)])), /can be none/],
  ['an aside of a worker', start(1, Buffer.concat([head(73), whole.subarray(20)])), /can be none/],
  ['an aside of a program that is told later', start(1, Buffer.concat([head(99), later.subarray(20)])), /can be none/],
  ['input on the stream of an aside', encode({ type: TYPE.STDIN, run: 1, stream: 3 }), /wrong stream/],
  ['a START that leaves for later without a gate', start(1, Buffer.concat([head(32), later.subarray(20)])), /what it cannot/],
  ['a worker that is told later', start(1, Buffer.concat([head(43), later.subarray(20)])), /what it cannot/],
  ['a terminal that is told later', start(1, Buffer.concat([head(39), later.subarray(20), u32(0x00500018)])), /what it cannot/],
  ['a START that tells its arguments and leaves them for later', start(1, startPayload({ argv: ['true'], later: true })), /leaves for later/],
  ['a START that tells its folder and leaves it for later', start(1, startPayload({ argv: [], cwd: '/', later: true })), /leaves for later/],
  ['a START that tells variables and leaves them for later', start(1, startPayload({ argv: [], env: ['A=b'], later: true })), /leaves for later/],
  ['a terminal without input', start(1, Buffer.concat([head(4), whole.subarray(20), u32(0x00500018)])), /without input/],
  ['a terminal without a size', start(1, Buffer.concat([head(5), whole.subarray(20)])), /cut short/],
  ['a terminal without rows', start(1, Buffer.concat([head(5), whole.subarray(20), u32(0x00500000)])), /impossible size/],
  ['a terminal with 4097 columns', start(1, Buffer.concat([head(5), whole.subarray(20), u32(0x10010018)])), /impossible size/],
  ['a size without a terminal', start(1, Buffer.concat([head(1), whole.subarray(20), u32(0x00500018)])), /after its end/],
  ['a worker without input', start(1, Buffer.concat([head(8), whole.subarray(20)])), /without input/],
  ['a worker at a terminal', start(1, Buffer.concat([head(13), whole.subarray(20), u32(0x00500018)])), /worker at a terminal/],
  ['a worker with arguments', start(1, startPayload({ argv: ['files', 'x'], stdin: true, worker: true })), /with arguments/],
  ['layers without a worker', start(1, Buffer.concat([head(17), whole.subarray(20)])), /without a worker/],
  ['a START for uid -1', start(1, Buffer.concat([head(0, -1), whole.subarray(20)])), /id -1/],
  ['a START without arguments', start(1, Buffer.concat([head(), u32(0), str('/'), u32(0), u32(0), str('')])), /no argument/],
  ['a START without a group', start(1, whole.subarray(0, whole.length - 4)), /cut short/],
  ['a group that is the folder itself', start(1, startPayload({ argv: ['a'], group: '.' })), /no name of a folder/],
  ['a group above', start(1, startPayload({ argv: ['a'], group: '..' })), /no name of a folder/],
  ['a group of several components', start(1, startPayload({ argv: ['a'], group: 'a/b' })), /no name of a folder/],
  ['too long a group', start(1, startPayload({ argv: ['a'], group: 'x'.repeat(256) })), /no name of a folder/],
  ['a NUL in an argument', start(1, startPayload({ argv: ['a\0b'] })), /NUL/],
  ['an environment entry without a name', start(1, startPayload({ argv: ['a'], env: ['=x'] })), /without a name/],
  ['too many rlimits', start(1, Buffer.concat([head(), u32(17)])), /too many rlimits/],
  ['too many arguments', start(1, Buffer.concat([head(), u32(0), str('/'), u32(4097)])), /too many strings/],
  ['too long an argument', start(1, startPayload({ argv: ['x'.repeat(131072)] })), /too long a string/],
]

describe('a malformed frame ends the cell with a word why', () => {
  test.each(cases)('%s', async (_name, bytes, says) => {
    await using peer = new Peer()
    peer.stdin.write(bytes)
    expect((await peer.takeType(TYPE.FATAL)).payload.toString()).toMatch(says)
    expect(await peer.exited).toBe(70)
    expect(peer.stderr).toMatch(/^warden: .+\n$/)
  })

  test('input beyond its credit', async () => {
    await using peer = new Peer()
    peer.start(1, { argv: ['sleep', '60'], stdin: true })
    for (let sent = 0; sent <= 2 * WINDOW; sent += 65536) peer.send({ type: TYPE.STDIN, run: 1, payload: Buffer.alloc(65536) })
    expect((await peer.takeType(TYPE.FATAL)).payload.toString()).toMatch(/beyond its credit/)
  })

  test('what came before it was still carried out', async () => {
    await using peer = new Peer()
    peer.stdin.write(Buffer.concat([start(1), encode({ type: 0x55 })]))
    await peer.takeType(TYPE.FATAL)
    expect(await peer.exited).toBe(70)
  })

  test('a frame that arrives byte by byte is not malformed', async () => {
    await using peer = new Peer()
    for (const byte of start(1, startPayload({ argv: ['echo', 'slowly'] }))) {
      peer.stdin.write(Buffer.of(byte))
      await new Promise(setImmediate)
    }
    expect((await peer.collect(1)).stdout.toString()).toBe('slowly\n')
  })

  test('the end of its stdin ends it quietly, even inside a frame', async () => {
    await using peer = new Peer()
    peer.stdin.end(start(1).subarray(0, 20))
    expect(await peer.exited).toBe(0)
    expect(peer.stderr).toBe('')
  })

  test.each([
    ['--wrong'],
    ['--disk', '10'],
    ['--disk', 'x', '1'],
    ['--join', '1'],
    ['--join-below', '3'],
    ['--join-below', '1', 'tasks'],
    ['--join-below', '3', ''],
    ['--join-below', '3', '..'],
    ['--join-below', '3', 'a/b'],
    ['--writable', '/tmp', '0', '0', '755'],
  ])('the arguments %s are refused by name', async (...args) => {
    await using peer = new Peer([WARDEN, ...args])
    expect(await peer.exited).toBe(70)
    expect(peer.stderr).toMatch(/^warden: understand .+: Invalid argument\n$/)
  })
})
