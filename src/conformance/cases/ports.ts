import { ensure, ensureBytes, ensureRejects, ensureSame, rejectionOf } from '../check.js'
import { python, until, withSandbox } from '../guest.js'
import type { Case, SubjectProcess, SubjectSandbox } from '../subject.js'

/** Sends back what it is sent, and when that has ended how much it was; says its port. */
const echo = `
import socket, sys, threading
listener = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET)
listener.settimeout(35)
print(listener.getsockname()[1], flush=True)
def serve(one):
    count = 0
    while True:
        data = one.recv(65536)
        if not data: break
        count += len(data)
        one.sendall(data)
    one.sendall(b'|%d' % count)
    one.close()
while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
`

async function startEcho(sandbox: SubjectSandbox, address = '127.0.0.1'): Promise<{ readonly port: number; readonly process: SubjectProcess }> {
  const process = await sandbox.start(python(echo, address))
  let printed = ''
  void (async () => {
    for await (const { bytes } of process.output) printed += new TextDecoder().decode(bytes)
  })().catch(() => undefined)
  ensure(await until(() => Promise.resolve(printed.includes('\n'))), 'the server must say its port', printed)
  return { port: Number(printed), process }
}

const encoder = new TextEncoder()

export const portCases: readonly Case[] = [
  {
    id: 'ports/both-ways',
    name: 'a connection to a port of the cell carries every byte both ways, and the end of each direction',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const { port } = await startEcho(sandbox)
        const sent = crypto.getRandomValues(new Uint8Array(65_536))
        const long = new Uint8Array(64 * sent.length)
        for (let at = 0; at < long.length; at += sent.length) long.set(sent, at)
        for (const bytes of [encoder.encode('hello'), new Uint8Array(0), long]) {
          const expected = new Uint8Array([...bytes, ...encoder.encode(`|${bytes.length}`)])
          ensureBytes(await sandbox.exchange(port, bytes), expected, 'the answer')
        }
        return `${long.length} bytes each way`
      }),
  },
  {
    id: 'ports/at-once',
    name: 'many connections at once are kept apart',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const { port } = await startEcho(sandbox)
        const words = Array.from({ length: 40 }, (_, index) => `word ${index} `.repeat(200))
        const answers = await Promise.all(words.map((word) => sandbox.exchange(port, encoder.encode(word))))
        ensureSame(
          answers.map((answer) => new TextDecoder().decode(answer)),
          words.map((word) => `${word}|${word.length}`),
          'the answers',
        )
        return `${words.length} connections`
      }),
  },
  {
    id: 'ports/ipv6',
    name: 'what listens on the IPv6 loopback alone is reached too',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const { port } = await startEcho(sandbox, '::1')
        ensureSame(new TextDecoder().decode(await sandbox.exchange(port, encoder.encode('six'))), 'six|3', 'the answer')
        return 'six'
      }),
  },
  {
    id: 'ports/nobody',
    name: 'a port on which nothing listens is told so, also after its server is gone',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const { port, process } = await startEcho(sandbox)
        await process.kill()
        return (await ensureRejects(sandbox.exchange(port, encoder.encode('x')), ['not-found'])).message
      }),
  },
  {
    id: 'ports/of-its-own',
    name: "a port of the host's, or of another sandbox, is no port of a sandbox",
    needs: ['isolates'],
    denial: true,
    run: (subject) =>
      withSandbox(subject, (sandbox) =>
        withSandbox(subject, async (other) => {
          const { port } = await startEcho(other)
          const before = subject.host.canaries.tcp4.connections()
          for (const each of [port, subject.host.canaries.tcp4.port]) await rejectionOf(sandbox.exchange(each, encoder.encode('x')))
          ensureSame(subject.host.canaries.tcp4.connections() - before, 0, "connections to the host's listener")
          ensureSame(new TextDecoder().decode(await other.exchange(port, encoder.encode('x'))), 'x|1', 'the answer in the other sandbox')
          return 'neither is reached'
        }),
      ),
  },
]
