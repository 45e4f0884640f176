import { expect, test } from 'vitest'
import {
  containmentCases,
  containmentGroups,
  hostCases,
  runCases,
  runServerCases,
  serverCases,
  type ServerAnswer,
  type ServerView,
} from '../../src/conformance/index.js'
import { createHostView } from '../../src/verify/host-view.js'
import { createUnwalledSubject } from './subjects/unwalled-subject.js'

const everything = [...containmentCases, ...serverCases, ...hostCases]

test('there are at least 150 cases of containment, each with an id of its own, a threat, what it tries and what a failure means', () => {
  expect(new Set(everything.map(({ id }) => id)).size).toBe(everything.length)
  expect(everything.length).toBeGreaterThanOrEqual(150)
  expect(new Set(everything.map(({ group }) => group))).toEqual(new Set(containmentGroups))
  for (const { id, threats, tries, means } of everything) {
    expect(threats.length, id).toBeGreaterThan(0)
    for (const threat of threats) expect(threat, id).toMatch(/^[FKPNMSXA]-\d\d$/)
    for (const sentence of [tries, means]) expect(sentence, id).toMatch(/^[A-Z"/].*\.$/s)
  }
})

/** What the host itself refuses to an ordinary user, or has none of, walls or not. */
const heldByTheHost = new Set([
  ...[
    'proc-sys',
    'sys',
    'new-mount-calls',
    'handles',
    'device-nodes',
    'fanotify',
    'extended-attributes',
    'renames',
    'hard-links',
    'reopened-descriptors',
    'masks-by-other-names',
  ].map((id) => `filesystem/${id}`),
  ...[
    'modules',
    'swap-and-accounting',
    'clocks',
    'names-of-the-machine',
    'ports-and-reboot',
    'raw-sockets',
    'process-controls',
    'kernel-log',
    'bpf-and-perf',
    'message-queues',
  ].map((id) => `kernel/${id}`),
  ...['priorities', 'limits-of-others', 'other-users', 'pinned-memory', 'watchers'].map((id) => `processes/${id}`),
  ...['capabilities', 'ids'].map((id) => `posture/${id}`),
  ...['console', 'inheritable-capabilities', 'procfs-redirects', 'release-agent'].map((id) => `advisories/${id}`),
])

test('without walls at least nine of ten denials go red, and because of what got through', { timeout: 600_000 }, async () => {
  await using host = await createHostView({ ownFolders: [], sharedFolders: [] })
  const isRoot = process.getuid?.() === 0
  const known = new Set(['isolation', 'files', 'root', 'liners', 'pools', 'ports'])
  const denials = containmentCases.filter(({ id, denial }) => denial && !known.has(id.split('/')[0] ?? '') && (isRoot || !heldByTheHost.has(id)))
  const results = await runCases(createUnwalledSubject(host), { cases: denials })
  const green = results.filter(({ verdict }) => verdict !== 'failed').map(({ id, verdict, reason, observed }) => `${id} ${verdict}: ${reason} ${observed}`)
  expect(results.length).toBeGreaterThan(isRoot ? 55 : 35)
  expect(green.length / results.length, green.join('\n')).toBeLessThanOrEqual(0.1)
  const broken = results.filter(({ verdict, reason }) => verdict === 'failed' && !/every try must be denied|what is wrong with a thread/.test(reason))
  expect(broken).toEqual([])
})

/** Whatever it is asked, it does, for everyone. */
const openDoor: ServerView = {
  first: { name: 'a', key: 'key-of-a', sandbox: 'aaaaaaaaaaaaaaaaaaaa' },
  second: { name: 'b', key: 'key-of-b', sandbox: 'bbbbbbbbbbbbbbbbbbbb' },
  keys: { reading: 'reading', revoked: 'revoked', expired: 'expired' },
  request: (): Promise<ServerAnswer> =>
    Promise.resolve({ status: 200, headers: { 'access-control-allow-origin': '*' }, body: 'key-of-a bbbbbbbbbbbbbbbbbbbb' }),
  raw: () => Promise.resolve('HTTP/1.1 200 OK\r\n\r\n'),
  addresses: () => Promise.resolve(['00000000']),
  socket: () => Promise.resolve({ mode: 0o666, isOwn: true, path: '/tmp/x' }),
  expose: () => Promise.resolve(''),
  log: () => 'key-of-a',
}

test('a server that refuses nothing fails every case', async () => {
  const results = await runServerCases(openDoor, { cases: serverCases })
  expect(results.filter(({ verdict }) => verdict !== 'failed').map(({ id }) => id)).toEqual([])
})
