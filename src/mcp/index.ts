/**
 * The door for agents: the Model Context Protocol over a pair of byte streams. One connection, one sandbox: it is made at the first call that needs it, keeps
 * files and variables from call to call, and is gone with the connection.
 */
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import type { Platform } from '../contract/platform.js'
import type { Connection } from './connection.js'
import { type LineStreams, LineTransport } from './line-transport.js'
import { OwnSandbox, type SandboxSource } from './own-sandbox.js'
import { addResources } from './resources.js'
import { addTools } from './tools.js'
import { Turns } from './turns.js'

export interface McpOptions extends SandboxSource, LineStreams {
  readonly platform: Platform
  readonly version: string
  /** Where commands and code begin; the sandbox's own when not given. */
  readonly cwd?: string
  /** Ends the connection. */
  readonly signal: AbortSignal
  /** For whoever runs us, never for the agent. */
  readonly log: (line: string) => void
}

const instructions = `Runs code and commands in a sandbox that is isolated from the user's machine.
One sandbox serves this whole conversation: files below /workspace and the variables of each language stay from call to call.
Put data in with write_file, compute with run_code (python, javascript, typescript, bash), look at the error it tells when it fails, mend the code, run it again.
Figures come back as images; files that code makes come back as resource links. There is no network unless the user allowed it.`

const mostAtOnce = 8
const mostWaiting = 200

/** Serves one connection. Resolves when it has ended and nothing of its sandbox is left. */
export async function serveMcp(options: McpOptions): Promise<void> {
  const { log, signal } = options
  const transport = new LineTransport(options)
  const connection: Connection & { server?: McpServer } = {
    sandbox: new OwnSandbox(options),
    turns: new Turns({ most: mostAtOnce, mostWaiting }),
    artifacts: new Map(),
    cwd: options.cwd,
    onArtifacts: () => connection.server?.sendResourceListChanged(),
  }
  const handle = serveStdio(
    () => {
      connection.server = buildServer(connection, options)
      return connection.server
    },
    { transport, onerror: (error) => log(error.message) },
  )
  try {
    await ended(transport, signal)
  } finally {
    await handle.close()
    await connection.sandbox.close()
  }
}

/** Whoever serves the transport has its own idea of what to do when it ends; both are done. */
function ended(transport: LineTransport, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const served = transport.onclose
    transport.onclose = () => {
      served?.()
      resolve()
    }
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function buildServer(connection: Connection, { version }: McpOptions): McpServer {
  const server = new McpServer(
    { name: 'glovebox', title: 'Glovebox', version },
    { instructions, capabilities: { tools: { listChanged: false }, resources: {} } },
  )
  addTools(server, connection)
  addResources(server, connection)
  return server
}
