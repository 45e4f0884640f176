/**
 * The door for agents: the Model Context Protocol over a pair of byte streams. One connection, one sandbox: it is made at the first call that needs it, keeps
 * files and variables from call to call, and is gone with the connection.
 */
import { type CallToolResult, McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import type { Platform } from '../contract/platform.js'
import { failure } from './answers.js'
import type { Connection, Context } from './connection.js'
import { listFiles, readFile, writeFile } from './file-tools.js'
import { type LineStreams, LineTransport } from './line-transport.js'
import { OwnSandbox, type SandboxSource } from './own-sandbox.js'
import { addResources } from './resources.js'
import { runCode } from './run-code.js'
import { runCommand } from './run-command.js'
import * as schemas from './schemas.js'
import { Turns } from './turns.js'

export interface McpOptions extends SandboxSource, LineStreams {
  readonly platform: Platform
  readonly version: string
  /** Where commands and code begin; the sandbox's own when not given. */
  readonly cwd?: string
  /** Ends the connection. */
  readonly signal: AbortSignal
  /** For whoever runs us, never for the agent. */
  log(line: string): void
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
  const guarded =
    <Input>(act: (connection: Connection, input: Input, context: Context) => Promise<CallToolResult>) =>
    async (input: Input, context: Context): Promise<CallToolResult> => {
      try {
        return await connection.turns.take(() => act(connection, input, context), context.mcpReq.signal)
      } catch (error) {
        return failure(error)
      }
    }
  const inside = { openWorldHint: false }
  server.registerTool(
    'run_code',
    {
      title: 'Run code',
      description:
        'Runs code in an interpreter that keeps its variables, imports and functions from call to call. Gives what it printed, the value of the last expression, figures as images with their data, tracebacks, and the files it made below /workspace.',
      inputSchema: schemas.runCodeInput,
      outputSchema: schemas.runCodeOutput,
      annotations: { title: 'Run code', readOnlyHint: false, destructiveHint: false, idempotentHint: false, ...inside },
    },
    guarded(runCode),
  )
  server.registerTool(
    'run_command',
    {
      title: 'Run a command',
      description: 'Runs a line of shell in the sandbox and gives its exit code and what it printed. Nothing of the shell but files stays for the next call.',
      inputSchema: schemas.runCommandInput,
      outputSchema: schemas.runCommandOutput,
      annotations: { title: 'Run a command', readOnlyHint: false, destructiveHint: true, idempotentHint: false, ...inside },
    },
    guarded(runCommand),
  )
  server.registerTool(
    'read_file',
    {
      title: 'Read a file',
      description: 'Reads a file of the sandbox, or a part of it: text as text, pictures as images, anything else as base64.',
      inputSchema: schemas.readFileInput,
      outputSchema: schemas.readFileOutput,
      annotations: { title: 'Read a file', readOnlyHint: true, ...inside },
    },
    guarded(readFile),
  )
  server.registerTool(
    'write_file',
    {
      title: 'Write a file',
      description: 'Writes a file of the sandbox, with the folders above it. Replaces what is there, unless append is set.',
      inputSchema: schemas.writeFileInput,
      outputSchema: schemas.writeFileOutput,
      annotations: { title: 'Write a file', readOnlyHint: false, destructiveHint: true, idempotentHint: true, ...inside },
    },
    guarded(writeFile),
  )
  server.registerTool(
    'list_files',
    {
      title: 'List files',
      description: 'Lists a folder of the sandbox, /workspace unless told otherwise.',
      inputSchema: schemas.listFilesInput,
      outputSchema: schemas.listFilesOutput,
      annotations: { title: 'List files', readOnlyHint: true, ...inside },
    },
    guarded(listFiles),
  )
  addResources(server, connection)
  return server
}
