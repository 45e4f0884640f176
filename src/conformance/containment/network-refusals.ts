import type { HostView } from '../subject.js'

type Sayings = Readonly<Record<string, string>>

/** What is said to the proxy of a sandbox that may reach no more than this, and must all be refused. */
export interface Refusal {
  readonly id: string
  readonly name: string
  readonly threats: string
  readonly tries: string
  readonly means: string
  readonly allow: readonly string[]
  readonly block?: readonly string[]
  readonly says: Sayings | ((host: HostView) => Sayings)
}

const connect = (place: string): string => `CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n\r\n`
const get = (url: string, host: string): string => `GET ${url} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
const named = (places: readonly string[], word: (place: string) => string): Sayings => Object.fromEntries(places.map((place) => [place, word(place)]))

const metadata = ['169.254.169.254', '169.254.170.2', '100.100.100.200', '168.63.129.16', '[fd00:ec2::254]', 'metadata.google.internal']
const unroutable = [
  '10.0.0.1',
  '172.16.0.1',
  '192.168.0.1',
  '100.64.0.1',
  '0.0.0.0',
  '127.0.0.2',
  '169.254.0.1',
  '192.0.0.1',
  '198.18.0.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
]
const spellings = [
  '2130706433',
  '0x7f000001',
  '017700000001',
  '127.1',
  '0177.0.0.1',
  '127.0.0.1.',
  'localhost',
  'LOCALHOST',
  'localhost.',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[::]',
  '[0:0:0:0:0:0:0:1]',
]

export const refusals: readonly Refusal[] = [
  {
    id: 'metadata',
    name: 'metadata services of clouds are denied, whatever is allowed',
    threats: 'N-07 S-26',
    tries: "With '*' allowed, asks the proxy for the metadata addresses of six clouds by CONNECT and by GET.",
    means: 'A program can get the credentials of the machine.',
    allow: ['*', '*:80'],
    says: {
      ...named(metadata, (host) => connect(`${host}:80`)),
      ...named(
        metadata.map((host) => `http://${host}/latest/`),
        (url) => get(url, new URL(url).host),
      ),
    },
  },
  {
    id: 'private-addresses',
    name: 'addresses that are not public are denied, whatever is allowed',
    threats: 'N-05 N-08',
    tries: "With '*' allowed, asks for private, carrier, link-local, multicast, reserved and broadcast addresses.",
    means: 'A program can reach the network around the host.',
    allow: ['*', '*:80'],
    says: named(unroutable, (host) => connect(`${host}:443`)),
  },
  {
    id: 'spellings-of-loopback',
    name: "the host's loopback is denied however it is written",
    threats: 'N-10 N-31',
    tries: 'Asks for it as a decimal, an octal, a hexadecimal number, shortened, with a dot, by name and mapped into IPv6.',
    means: 'What checks a name and what connects to it read it differently.',
    allow: ['*', '*:80'],
    says: ({ canaries }) => named(spellings, (host) => connect(`${host}:${canaries.tcp4.port}`)),
  },
  {
    id: 'loopback-by-get',
    name: "the host's loopback is denied to requests too",
    threats: 'N-04 N-10',
    tries: 'Sends GETs for the planted listener, with user names and other tricks in the URL.',
    means: 'Services that trust their own machine can be reached.',
    allow: ['*', '*:80'],
    says: ({ canaries: { tcp4 } }) => ({
      plain: get(`http://127.0.0.1:${tcp4.port}/`, `127.0.0.1:${tcp4.port}`),
      'a user': get(`http://example.com@127.0.0.1:${tcp4.port}/`, `127.0.0.1:${tcp4.port}`),
      'a fragment': get(`http://example.com#@127.0.0.1:${tcp4.port}/`, `127.0.0.1:${tcp4.port}`),
      'a backslash': get(`http://127.0.0.1:${tcp4.port}\\@example.com/`, 'example.com'),
    }),
  },
  {
    id: 'literal-addresses',
    name: 'an address is denied where only names are allowed',
    threats: 'N-11 N-32',
    tries: 'With one name allowed, asks for addresses by CONNECT.',
    means: 'A list of names can be gone around by numbers.',
    allow: ['example.com'],
    says: named(['1.1.1.1:443', '8.8.8.8:443', '[2606:4700:4700::1111]:443', '93.184.215.14:443'], connect),
  },
  {
    id: 'empty-list',
    name: 'an empty list allows nothing',
    threats: 'N-28 N-32 A-13',
    tries: 'With an empty list, asks for names, addresses and the proxy itself.',
    means: 'A list that was emptied opens everything, as it did in sandboxes of others.',
    allow: [],
    says: named(['example.com:443', '1.1.1.1:443', 'localhost:80', '127.0.0.1:3128', 'glovebox:80'], connect),
  },
  {
    id: 'names-that-look-alike',
    name: 'names that only look like one that is allowed are denied',
    threats: 'N-10 N-32',
    tries: 'With example.com and *.example.org allowed, asks for siblings, suffixes, prefixes, the bare domain and look-alikes.',
    means: 'The list matches more than it says.',
    allow: ['example.com', '*.example.org'],
    says: named(
      [
        'example.com.evil.test:443',
        'evilexample.com:443',
        'example.org:443',
        'example.comx:443',
        'xn--exmple-cua.com:443',
        'example.com%00.evil.test:443',
        'ex\u00e4mple.com:443',
      ],
      connect,
    ),
  },
  {
    id: 'other-ports',
    name: 'ports that no rule names are denied',
    threats: 'N-08 N-13',
    tries: 'With a name allowed, asks for its ports of mail, DNS, DNS over TLS, ssh and databases.',
    means: 'What was allowed for the web is allowed for everything.',
    allow: ['example.com'],
    says: named(
      [25, 53, 853, 22, 5432, 0, 65_536].map((port) => `example.com:${port}`),
      connect,
    ),
  },
  {
    id: 'narrower-block',
    name: 'a block beats what is allowed around it',
    threats: 'N-34',
    tries: "With '*' allowed and one domain blocked, asks for that domain and what is below it.",
    means: 'A block does not hold.',
    allow: ['*'],
    block: ['blocked.test', '*.blocked.test'],
    says: named(['blocked.test:443', 'a.blocked.test:443', 'a.b.blocked.test:443', 'BLOCKED.test:443', 'blocked.test.:443'], connect),
  },
  {
    id: 'host-and-target',
    name: 'a request whose Host is not its target is refused',
    threats: 'N-20 A-14',
    tries: 'Sends requests with another Host, two Hosts, none, and one that is folded.',
    means: 'What is judged is one host, and what answers is another.',
    allow: ['example.com'],
    says: {
      another: get('http://example.com/', 'evil.test'),
      two: 'GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nHost: evil.test\r\n\r\n',
      'another, not absolute': get('/', 'evil.test'),
      folded: 'GET http://evil.test/ HTTP/1.1\r\nHost: example.com\r\n evil.test\r\n\r\n',
      none: 'GET / HTTP/1.1\r\n\r\n',
    },
  },
  {
    id: 'smuggling',
    name: 'requests that two servers read in two ways are refused',
    threats: 'N-23',
    tries: 'Sends two lengths, a length and chunks, odd encodings, bare line feeds and a header without a name.',
    means: 'A second request can be hidden in one that was allowed.',
    allow: ['example.com'],
    says: {
      'two lengths': 'POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx',
      'a length and chunks': 'POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'an odd encoding': 'POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
      'bare line feeds': 'GET http://example.com/ HTTP/1.1\nHost: example.com\n\n',
      'a space before the colon': 'GET http://example.com/ HTTP/1.1\r\nHost : example.com\r\n\r\n',
      'no name': 'GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n: x\r\n\r\n',
    },
  },
  {
    id: 'other-protocols',
    name: 'other ways to tunnel are refused: TRACE, h2c, CONNECT-UDP, other schemes',
    threats: 'N-19 N-25',
    tries: 'Asks for upgrades, HTTP/2 without TLS, https and file URLs without CONNECT, and TRACE.',
    means: 'Something passes the proxy that it cannot read.',
    allow: ['example.com'],
    says: {
      TRACE: 'TRACE http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n',
      h2c: 'GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n',
      'prior knowledge': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      https: get('https://example.com/', 'example.com'),
      file: get('file:///etc/passwd', 'example.com'),
      ftp: get('ftp://example.com/', 'example.com'),
    },
  },
  {
    id: 'socks',
    name: 'SOCKS is judged as HTTP is, and neither listens nor sends datagrams',
    threats: 'N-26',
    tries: 'Asks by SOCKS4, and by SOCKS5 for BIND, UDP and the loopback of the host.',
    means: 'A second door has other rules.',
    allow: ['*', '*:80'],
    says: { SOCKS4: '\x04\x01\x00\x50\x7f\x00\x00\x01\x00', SOCKS4a: '\x04\x01\x00\x50\x00\x00\x00\x01\x00localhost\x00', 'no method': '\x05\x01\x02' },
  },
]
