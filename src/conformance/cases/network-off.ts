import { type Attack, attackCase } from '../attack.js'
import { ensure, ensureSame } from '../check.js'
import { askPython, python, until, withSandbox } from '../guest.js'
import type { Case, SubjectSandbox } from '../subject.js'

/** Documentation, public resolvers, what clouds tell machines about themselves, and what is near: no packet leaves where one of these gets through. */
const places = {
  'a public address': '1.1.1.1',
  'a resolver': '8.8.8.8',
  'an address of nobody': '192.0.2.1',
  'the metadata address': '169.254.169.254',
  'a private address': '10.0.0.1',
  'a gateway of containers': '172.17.0.1',
  'a carrier': '100.100.100.200',
}

const aimed = Object.fromEntries(
  Object.entries(places).map(([name, address]) => [
    name,
    `(lambda s: (s.connect(('${address}', 53)), s.getsockname()))(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))`,
  ]),
)

const unreachable: Attack = {
  id: 'network-off-reach',
  name: 'without a network nothing is on the way to anywhere, by any protocol',
  errors: ['ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EPROTONOSUPPORT', 'ESOCKTNOSUPPORT', 'EPERM', 'EACCES', 'EINVAL'],
  tries: {
    ...aimed,
    'a public address of IPv6': "(lambda s: (s.connect(('2606:4700:4700::1111', 53)), s.getsockname()))(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))",
    'the metadata address of IPv6': "(lambda s: (s.connect(('fd00:ec2::254', 80)), s.getsockname()))(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))",
    'a stream': "connect(socket.AF_INET, ('192.0.2.1', 443))",
    'a stream of IPv6': "connect(socket.AF_INET6, ('2001:db8::1', 443))",
    'a broadcast':
      "(lambda s: (s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1), s.connect(('255.255.255.255', 9))))(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))",
    'an echo request': "(lambda s: s.connect(('192.0.2.1', 0)))(socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1))",
    'an association': "(lambda s: s.connect(('192.0.2.1', 9)))(socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132))",
  },
  controls: {
    'its own loopback': "(lambda s: (s.connect(('127.0.0.1', 53)), s.getsockname()))(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))",
    'a stream to itself': "serve(socket.AF_INET, ('127.0.0.1', 0))",
  },
}

/** Who listens or waits for datagrams, as the kernel has it. */
const listening = `[l.split()[1] for n in ('tcp', 'tcp6', 'udp', 'udp6') for l in quietly('/proc/net/' + n).decode().splitlines()[1:] if l.split()[3] in ('0A', '07')]`

const doors: Attack = {
  id: 'network-off-doors',
  name: 'without a network nothing in the cell listens, and programs can listen and connect among themselves',
  tries: { 'who listens': `found(${listening})` },
  controls: ({ canaries }) => ({
    'on its loopback': "serve(socket.AF_INET, ('127.0.0.1', 0))",
    ...(canaries.tcp6 && { 'on its loopback of IPv6': "serve(socket.AF_INET6, ('::1', 0))" }),
    'on every address it has': "serve(socket.AF_INET, ('0.0.0.0', 0))",
    'what listens is seen': `(lambda s: (s.bind(('127.0.0.1', 0)), s.listen(1), found(${listening}), s.close()))(socket.socket())`,
  }),
}

/** Each sets what is so already. */
const settings: Attack = {
  id: 'network-settings',
  name: 'nothing of its network can be set, while it can be read',
  tries: {
    'the flags of an interface': 'interface(0x8914, interface(0x8913))',
    'the size of packets': 'interface(0x8922, interface(0x8921))',
    forwarding: "put('/proc/sys/net/ipv4/ip_forward', read('/proc/sys/net/ipv4/ip_forward'))",
    'who may ping': "put('/proc/sys/net/ipv4/ping_group_range', read('/proc/sys/net/ipv4/ping_group_range'))",
  },
  controls: {
    'the flags of an interface': 'interface(0x8913)',
    'the size of packets': 'interface(0x8921)',
    forwarding: "read('/proc/sys/net/ipv4/ip_forward')",
  },
}

/** Says its port, and waits. */
const listener = `
import socket, time
four = socket.create_server(('0.0.0.0', 0))
print(four.getsockname()[1], flush=True)
time.sleep(35)`

const caller = `
import errno, json, socket, sys
seen = {}
for address in ('127.0.0.1', '0.0.0.0', '127.0.0.2', '::1', '::ffff:127.0.0.1'):
    try: socket.create_connection((address, int(sys.argv[1])), 2).close(); seen[address] = 'connected'
    except OSError as error: seen[address] = errno.errorcode.get(error.errno, type(error).__name__)
print(json.dumps(seen))`

async function listen(sandbox: SubjectSandbox): Promise<string> {
  const process = await sandbox.start(python(listener))
  let printed = ''
  void (async () => {
    for await (const { bytes } of process.output) printed += new TextDecoder().decode(bytes)
  })().catch(() => undefined)
  ensure(await until(() => Promise.resolve(printed.includes('\n'))), 'the server must say its port', printed)
  return printed.trim()
}

const inbound: Case = {
  id: 'isolation/network-inbound',
  name: 'what listens in one sandbox is reached from within it, and not from another',
  needs: ['isolates'],
  denial: true,
  run: (subject) =>
    withSandbox(subject, (first) =>
      withSandbox(subject, async (second) => {
        const port = await listen(first)
        const within = await askPython<Record<string, string>>(first, caller, { args: [port] })
        ensureSame(within['127.0.0.1'], 'connected', 'what its own program sees')
        const seen = await askPython<Record<string, string>>(second, caller, { args: [port] })
        const through = Object.entries(seen).filter(([, how]) => how === 'connected')
        ensureSame(Object.fromEntries(through), {}, 'what the second sees')
        return JSON.stringify(seen)
      }),
    ),
}

export const networkOffCases: readonly Case[] = [attackCase(unreachable), attackCase(doors), attackCase(settings), inbound]
