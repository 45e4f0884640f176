import type { Attack } from '../attack.js'
import { attackCase, literal } from '../attack.js'
import { ensureSame } from '../check.js'
import type { Case, HostView } from '../subject.js'

function connections({ canaries }: HostView): number {
  return canaries.tcp4.connections() + (canaries.tcp6?.connections() ?? 0) + (canaries.abstractSocket?.connections() ?? 0)
}

const loopback: Attack = {
  id: 'host-loopback',
  name: "the host's loopback cannot be reached, while its own can",
  tries: ({ canaries }) => ({
    '127.0.0.1': `connect(socket.AF_INET, ('127.0.0.1', ${canaries.tcp4.port}))`,
    '0.0.0.0': `connect(socket.AF_INET, ('0.0.0.0', ${canaries.tcp4.port}))`,
    'mapped into IPv6': `connect(socket.AF_INET6, ('::ffff:127.0.0.1', ${canaries.tcp4.port}))`,
    ...(canaries.tcp6 && { '[::1]': `connect(socket.AF_INET6, ('::1', ${canaries.tcp6.port}))` }),
  }),
  controls: { 'its own loopback': "serve(socket.AF_INET, ('127.0.0.1', 0))" },
}

const abstractSocket: Attack = {
  id: 'host-abstract-socket',
  name: 'an abstract socket of the host cannot be reached, while its own can',
  tries: ({ canaries }) => (canaries.abstractSocket ? { 'by name': `connect(socket.AF_UNIX, '\\0' + ${literal(canaries.abstractSocket.name)})` } : {}),
  controls: { 'its own': "serve(socket.AF_UNIX, '\\0' + str(os.getpid()))" },
}

const interfaces: Attack = {
  id: 'no-network',
  name: 'there is no interface but loopback, and no route to anywhere',
  tries: {
    interfaces:
      "found([n for n in (l.split(':')[0].strip() for l in read('/proc/net/dev').decode().splitlines()[2:]) if n not in ('lo', 'tunl0', 'sit0', 'gre0', 'erspan0', 'gretap0', 'ip6tnl0', 'ip6_vti0', 'ip_vti0', 'ip6gre0')])",
    routes: "found(read('/proc/net/route').splitlines()[1:])",
    'a public address': "(lambda s: (s.connect(('192.0.2.1', 53)), s.getsockname()))(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))",
    'the metadata address': "(lambda s: (s.connect(('169.254.169.254', 80)), s.getsockname()))(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))",
    'a packet socket': 'socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)',
    'a raw socket': 'socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)',
  },
  controls: {
    'its own loopback': "(lambda s: (s.connect(('127.0.0.1', 53)), s.getsockname()))(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))",
    'its own interface': "found(b'lo:' in read('/proc/net/dev'))",
  },
}

function watched(attack: Attack): Case {
  const attacking = attackCase(attack)
  return {
    ...attacking,
    run: async (subject) => {
      const before = connections(subject.host)
      const observed = await attacking.run(subject)
      ensureSame(connections(subject.host) - before, 0, "the connections that the host's listeners saw")
      return observed
    },
  }
}

export const networkIsolationCases: readonly Case[] = [watched(loopback), watched(abstractSocket), attackCase(interfaces)]
