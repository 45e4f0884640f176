import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { createPlatform } from '../compose.js'
import { SandboxError } from '../contract/errors.js'
import { PolicyRefusal } from '../policy/policy-refusal.js'
import { type CreateOptions, Sandbox } from '../sandbox/index.js'
import type { Verdict } from './demo-steps.js'

/** By the door itself: what a client would be told by its environment leaves out names of the machine it runs on. */
const askScript = `
import http.client, os, sys
door = os.environ['HTTP_PROXY'].removeprefix('http://')
for host in sys.argv[1:]:
    asked = http.client.HTTPConnection(door, timeout=5)
    asked.request('GET', 'http://' + host + '/', headers={'Host': host})
    print(asked.getresponse().read().decode().strip())`

/** Names below localhost are this machine's without anybody being asked for them. */
const allowed = 'allowed.localhost'
const other = 'other.localhost'

/** One host is allowed, by its name, and answers; of another one the program is told why not, and nothing arrives there. `missing` where no cell has a network. */
export async function reachOne({ platform: _platform, ...options }: CreateOptions): Promise<Verdict | { missing: string }> {
  await using server = await startServer()
  // The server is on loopback, which nobody reaches unless an operator has named it: us, where there is no other.
  const hasOperator = process.env.GLOVEBOX_POLICY !== undefined
  await using platform = createPlatform(hasOperator ? {} : { policy: { ceiling: { network: { private: ['127.0.0.1/32'] } } } })
  try {
    await using sandbox = await Sandbox.create({ ...options, platform, network: { allow: [`${allowed}:${server.port}`] } })
    const { stdout, stderr } = await sandbox.run(['python3', '-c', askScript, `${allowed}:${server.port}`, `${other}:${server.port}`])
    const [answer = '', refusal = ''] = stdout.split('\n')
    const reason = /is denied: ([^;]+)/.exec(refusal)?.[1]
    const ok = answer === 'hello' && reason !== undefined && server.hosts.join() === `${allowed}:${server.port}`
    if (ok) return { ok, seen: `"${answer}"; another refused: ${reason}` }
    // What an operator does not allow is no fault of the sandbox's.
    const why = !hasOperator ? undefined : /is denied: ([^;]+)/.exec(answer)?.[1]
    if (why !== undefined) return { missing: `the policy: ${why}` }
    return { ok, seen: reason === undefined ? lastLine(refusal || stderr || 'nothing was refused') : `it was not reached: ${lastLine(answer)}` }
  } catch (error) {
    if (error instanceof PolicyRefusal || (error instanceof SandboxError && error.code === 'unsupported')) return { missing: error.message }
    throw error
  }
}

interface Hello extends AsyncDisposable {
  readonly port: number
  /** Whom those who came asked for. */
  readonly hosts: readonly string[]
}

async function startServer(): Promise<Hello> {
  const hosts: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    // A request this short comes in one piece.
    socket.once('data', (head) => {
      hosts.push(/^host: (.*)\r$/im.exec(head.toString('latin1'))?.[1] ?? '')
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nhello\n')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    hosts,
    [Symbol.asyncDispose]: async () => {
      server.close()
      await once(server, 'close')
    },
  }
}

function lastLine(text: string): string {
  return (text.trimEnd().split('\n').at(-1) ?? '').slice(0, 36)
}
