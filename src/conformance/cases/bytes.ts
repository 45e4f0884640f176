import { bytesOf, ensure, ensureBytes, ensureExited, ensureSame, text } from '../check.js'
import { python, withSandbox } from '../guest.js'
import type { Case } from '../subject.js'

const MiB = 2 ** 20

/** Every byte value, and what text handling would mend: NUL, lone continuation bytes, cut sequences, surrogates, CRLF, a BOM. */
function awkwardBytes(): Uint8Array {
  const all = Array.from({ length: 256 }, (_, value) => value)
  return Uint8Array.from([...all, 0, 0, 0xff, 0xfe, 0xc3, 0x28, 0xe2, 0x82, 0xed, 0xa0, 0x80, 0xf0, 0x9f, 0x92, 13, 10, 13, 10, 0xef, 0xbb, 0xbf, 0xc3])
}

/** Bytes that differ everywhere, so that a lost, doubled or moved block is seen. */
function patternBytes(length: number): Uint8Array {
  const words = new Uint32Array(Math.ceil(length / 4))
  let state = 0x9e3779b9
  for (let at = 0; at < words.length; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    words[at] = state
  }
  return new Uint8Array(words.buffer, 0, length)
}

async function digestOf(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', bytes)
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

const writeAwkward = "import sys; sys.stdout.buffer.write(bytes(range(256)) + bytes.fromhex('0000fffec328e282eda080f09f920d0a0d0aefbbbfc3'))"

/** What an EXITED frame with code 0, an end of stdout, a GONE and a FATAL look like on the channel, for any early run id. */
const forgery = `
import struct, sys
out = b''
for run in (0, 1, 2, 3, 255):
    for kind, stream, payload in ((0x23, 0, struct.pack('<IIQQQ', 0, 0, 1, 1, 1)), (0x22, 1, b''), (0x22, 2, b''), (0x24, 0, b''), (0x7f, 0, b'over'), (0x01, 0, struct.pack('<II', 1, 2**31))):
        out += struct.pack('<IBBHI', len(payload), kind, stream, 0, run) + payload
out += b'\\n{"outcome":{"kind":"exited","code":0}}\\n'
sys.stdout.buffer.write(out); sys.stdout.flush(); sys.stderr.buffer.write(out); sys.stderr.flush()
print(len(out), end='')
sys.exit(9)`

export const bytesCases: readonly Case[] = [
  {
    id: 'bytes/stdout-exact',
    name: 'stdout arrives byte for byte, with NUL and with what is not UTF-8',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const result = await sandbox.run(python(writeAwkward))
        ensureExited(result)
        ensureBytes(result.stdout, awkwardBytes(), 'stdout')
        ensureSame(result.stderr.length, 0, 'the length of stderr')
        return `${result.stdout.length} awkward bytes came through`
      }),
  },
  {
    id: 'bytes/stderr-separate',
    name: 'stdout and stderr arrive apart, each whole',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const result = await sandbox.run(['sh', '-c', 'printf out1; printf err1 >&2; printf out2; printf err2 >&2'])
        ensureExited(result)
        ensureSame([text(result.stdout), text(result.stderr)], ['out1out2', 'err1err2'], 'stdout and stderr')
        ensureSame(result.usage.outputBytes, 16, 'usage.outputBytes')
        return 'out1out2 and err1err2'
      }),
  },
  {
    id: 'bytes/stdin-exact',
    name: 'stdin arrives byte for byte at every size around the borders of buffers',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const sizes = [0, 1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 262_143, 262_144, 262_145, 3 * MiB + 1]
        for (const size of sizes) {
          const bytes = patternBytes(size)
          const result = await sandbox.run(['cat'], { stdin: bytes })
          ensureExited(result)
          ensureBytes(result.stdout, bytes, `the echo of ${size} bytes`)
        }
        return `${sizes.length} sizes echoed`
      }),
  },
  {
    id: 'bytes/stdin-64m',
    name: '64 MiB of stdin arrive whole',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const bytes = patternBytes(64 * MiB)
        const digest = ensureExited(await sandbox.run(['sha256sum'], { stdin: bytes })).slice(0, 64)
        ensureSame(digest, await digestOf(bytes), 'the digest of what the program read')
        return `sha256 ${digest.slice(0, 16)}…`
      }),
  },
  {
    id: 'bytes/stdin-default',
    name: 'a program that is given no stdin reads an end of file',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        ensureSame(ensureExited(await sandbox.run(['wc', '-c'])).trim(), '0', 'what wc counted')
        return '0 bytes, then the end'
      }),
  },
  {
    id: 'bytes/stdin-unread',
    name: 'a program that does not read its stdin ends all the same',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        ensureExited(await sandbox.run(['sh', '-c', 'exec 0<&-; exit 3'], { stdin: patternBytes(2 * MiB) }), 3)
        ensureExited(await sandbox.run(['sh', '-c', 'head -c 10 >/dev/null; exit 4'], { stdin: patternBytes(2 * MiB) }), 4)
        return 'exited with 3 and 4 with 2 MiB unread'
      }),
  },
  {
    id: 'bytes/stdin-interactive',
    name: 'what is written to a running program is answered before its stdin ends',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const process = await sandbox.start(['sh', '-c', 'while read -r line; do echo "got $line"; done; echo over'], { stdin: true })
        const lines: string[] = []
        await process.write(bytesOf('one\n'))
        for await (const event of process.output) {
          lines.push(text(event.bytes))
          if (lines.join('') === 'got one\n') await process.write(bytesOf('two\n'))
          if (lines.join('') === 'got one\ngot two\n') await process.endInput()
        }
        const { outcome } = await process.ended
        ensureSame([lines.join(''), outcome], ['got one\ngot two\nover\n', { kind: 'exited', code: 0 }], 'the conversation and its end')
        return lines.join('').trim().replaceAll('\n', ', ')
      }),
  },
  {
    id: 'bytes/forged-frames',
    name: 'output that imitates our frames is output and nothing more',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const result = await sandbox.run(python(forgery))
        ensureExited(result, 9)
        ensure(result.stderr.length > 0, 'the forgery must come out on stderr', 'nothing')
        ensure(text(result.stdout).endsWith(String(result.stderr.length)), 'stdout must be the forgery and its length', result.stdout.length)
        ensureBytes(result.stdout.subarray(0, result.stderr.length), result.stderr, 'the forgery on stdout')
        ensureExited(await sandbox.run(['true']))
        return `${result.stderr.length} forged bytes came out as output; exited with 9`
      }),
  },
  {
    id: 'bytes/dev-stdout',
    name: '/dev/stdout and /dev/stderr can be opened and written to',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const result = await sandbox.run(['sh', '-c', 'echo a >/dev/stdout && echo b >/dev/stderr && echo c >/proc/self/fd/1'])
        ensureExited(result)
        ensureSame([text(result.stdout), text(result.stderr)], ['a\nc\n', 'b\n'], 'stdout and stderr')
        return 'opened by name and by descriptor'
      }),
  },
  {
    id: 'bytes/large-output',
    name: 'eight mebibytes on each stream at once arrive whole',
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          const script = `import os, threading
def flood(fd, byte):
    left = ${8 * MiB}
    while left: left -= os.write(fd, byte * min(left, 60000))
threads = [threading.Thread(target=flood, args=a) for a in ((1, b'o'), (2, b'e'))]
[t.start() for t in threads]; [t.join() for t in threads]`
          const result = await sandbox.run(python(script))
          ensureExited(result)
          ensureBytes(result.stdout, new Uint8Array(8 * MiB).fill(0x6f), 'stdout')
          ensureBytes(result.stderr, new Uint8Array(8 * MiB).fill(0x65), 'stderr')
          ensureSame(result.usage.outputBytes, 16 * MiB, 'usage.outputBytes')
          return '8 MiB and 8 MiB, unmixed'
        },
        { limits: { output: '32m' } },
      ),
  },
]
