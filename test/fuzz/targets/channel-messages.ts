import { checkHello, parseAccepted, parseClosed, parseExited, parseFailed, parsePid, parseRefusal } from '../../../src/channel/messages.js'
import { parseHost } from '../../../src/policy/network-host.js'
import { type FuzzTarget, holds, isRefusal, u32, unlessRefused } from '../target.js'

const least = { hello: 8, pid: 4, failed: 8, closed: 4, accepted: 24, exited: 48 } as const

/** What the payloads of a warden's frames say, each of a length that the frame's rule allows. */
export const target: FuzzTarget = {
  name: 'channel-messages',
  most: 300,
  seeds: [
    u32(4, 2 * 1024 * 1024),
    u32(1),
    Buffer.concat([u32(2, 2), Buffer.from('no such file')]),
    Buffer.concat([Buffer.of(1, 4, 187, 1, 10, 0, 0, 1), Buffer.alloc(12), u32(262_144)]),
    Buffer.concat([Buffer.of(2, 6, 80, 0), Buffer.alloc(16, 1), u32(32_768)]),
    Buffer.concat([u32(0, 7), Buffer.alloc(40)]),
    Buffer.concat([u32(4, 111), Buffer.from('refused')]),
  ],
  run(bytes) {
    const of = (length: number): Uint8Array => (bytes.length >= length ? bytes : Buffer.concat([bytes, Buffer.alloc(length - bytes.length)]))
    unlessRefused(() => checkHello(of(least.hello)))
    const pid = unlessRefused(() => parsePid(of(least.pid), 'STARTED'))
    if (pid !== undefined) holds(pid > 0 && pid < 2 ** 31, 'a pid is one')
    const failed = unlessRefused(() => parseFailed(of(least.failed)))
    if (failed) holds(failed.errno <= 4095 && !/\p{Cc}/u.test(failed.text), 'what failed is told in words')
    for (const error of [unlessRefused(() => parseRefusal(of(least.failed), 80)), unlessRefused(() => parseClosed(of(least.closed), 80))])
      if (error) holds(isRefusal(error), 'a refusal is one of ours')
    const accepted = unlessRefused(() => parseAccepted(of(least.accepted).subarray(0, least.accepted)))
    if (accepted) holds(parseHost(accepted.address)?.kind === 'address' && accepted.port > 0, 'what was accepted has an address')
    const exited = unlessRefused(() => parseExited(of(least.exited)))
    if (exited) holds(exited.code >= 0 && Number.isFinite(exited.cpuUserMs) && exited.memoryPeakBytes >= 0, 'what ended is told in numbers')
  },
}
