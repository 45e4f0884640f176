// The rooms of the source tree and what each may import: the tree is the architecture. `rooms` are other rooms, `packages` third-party ones, `node` the
// modules of Node itself ('*' for any). A room that is not listed, and an import that is not allowed, fail the layer check.

/** @typedef {{ rooms: readonly string[] | '*', packages?: readonly string[], node?: readonly string[] | '*' }} Room */

// sys is the only door to the operating system: elsewhere nobody starts a process.
const harmless = [
  'node:stream',
  'node:stream/promises',
  'node:events',
  'node:buffer',
  'node:crypto',
  'node:path',
  'node:timers',
  'node:timers/promises',
  'node:util',
]
const withFiles = [...harmless, 'node:fs', 'node:fs/promises', 'node:net', 'node:os', 'node:url', 'node:process']

/** @type {Record<string, Room>} */
export const rooms = {
  'index.ts': { rooms: '*' },
  'compose.ts': { rooms: '*', node: withFiles },
  // The same for what serves many.
  'ledger.ts': { rooms: '*', node: withFiles },
  'serve.ts': { rooms: '*', node: withFiles },
  // What engines left that were killed.
  'recovery.ts': { rooms: '*', node: withFiles },
  // The way to a server, which a library takes that has no engine of its own.
  'connect.ts': { rooms: ['contract', 'client', 'sys'] },
  // Loaded before anything else, and by every command.
  'start.ts': { rooms: ['sys'], node: withFiles },
  contract: { rooms: [], packages: ['zod'], node: ['node:stream'] },
  sandbox: { rooms: ['contract'], node: harmless },
  policy: { rooms: ['contract'], packages: ['zod'] },
  receipt: { rooms: ['contract'], node: ['node:crypto'] },
  scan: { rooms: ['contract'] },
  sys: { rooms: ['contract'], packages: ['zod', 'libsql'], node: '*' },
  channel: { rooms: ['contract'], node: harmless },
  cell: { rooms: ['contract', 'sys', 'channel'], node: withFiles },
  'drivers/*': { rooms: ['contract', 'sys', 'channel', 'cell'], node: withFiles },
  templates: { rooms: ['contract', 'sys', 'policy'], packages: ['zod'], node: withFiles },
  interpreter: { rooms: ['contract', 'channel'], node: harmless },
  egress: { rooms: ['contract', 'policy', 'sys'], node: [...withFiles, 'node:http', 'node:http2', 'node:tls', 'node:dns'] },
  audit: { rooms: ['contract', 'policy', 'sys'], packages: ['zod'], node: harmless },
  tenants: { rooms: ['contract', 'policy', 'sys'], packages: ['zod'], node: harmless },
  engine: { rooms: ['contract', 'policy', 'receipt', 'channel', 'interpreter'], node: harmless },
  learn: { rooms: ['contract', 'policy', 'sys', 'channel'], node: harmless },
  server: { rooms: ['contract'], packages: ['zod', 'ws'], node: [...harmless, 'node:http', 'node:https', 'node:net', 'node:tls'] },
  client: { rooms: ['contract'] },
  // Of OpenTelemetry only types, and what is loaded where spans are asked for.
  watch: {
    rooms: ['contract'],
    packages: ['@opentelemetry/api', '@opentelemetry/sdk-trace-node', '@opentelemetry/exporter-trace-otlp-http', '@opentelemetry/resources'],
    node: [...harmless, 'node:perf_hooks'],
  },
  mcp: { rooms: ['contract', 'sandbox'], packages: ['@modelcontextprotocol/server', 'zod'], node: harmless },
  bench: {
    rooms: ['contract', 'sandbox', 'sys'],
    // What a sandboxed run costs is told beside a plain spawn.
    node: [...withFiles, 'node:child_process'],
  },
  verify: {
    rooms: ['contract', 'sandbox', 'conformance', 'sys'],
    // Canaries are processes and listeners of the host's; what the server says to bad requests is asked byte by byte.
    node: [...withFiles, 'node:child_process', 'node:stream/consumers'],
  },
  adapters: { rooms: ['contract', 'sandbox'] },
  cli: {
    rooms: [
      'contract',
      'sandbox',
      'client',
      'policy',
      'receipt',
      'scan',
      'mcp',
      'bench',
      'verify',
      'compose.ts',
      'ledger.ts',
      'serve.ts',
      'recovery.ts',
      'conformance',
    ],
    packages: ['commander', 'picocolors', 'zod'],
    // The demo measures a sandboxed run beside a plain spawn, which is the one thing nobody else needs.
    node: [...withFiles, 'node:tty', 'node:readline', 'node:child_process'],
  },
  conformance: { rooms: ['contract'], node: harmless },
}

/** Names that say nothing about what is inside. */
export const emptyNames = ['utils', 'util', 'core', 'shared', 'helpers', 'common', 'misc', 'lib']
