import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { Client as ModernClient } from '@modelcontextprotocol/client'
import { StdioClientTransport as ModernTransport } from '@modelcontextprotocol/client/stdio'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { cliPath } from '../cli/cli.js'

export interface Block {
  readonly type: string
  readonly text?: string
  readonly data?: string
  readonly mimeType?: string
  readonly uri?: string
  readonly resource?: { readonly text?: string; readonly mimeType?: string }
}

export interface Called {
  readonly content: readonly Block[]
  readonly structuredContent?: Record<string, unknown>
  readonly isError?: boolean
}

export interface CallOptions {
  readonly signal?: AbortSignal
  readonly onprogress?: (progress: { progress: number; message?: string | undefined; total?: number | undefined }) => void
}

/** One of the official clients, with as much of it as all of them have. */
export interface Agent {
  readonly version: string | undefined
  call(name: string, args: Record<string, unknown>, options?: CallOptions): Promise<Called>
  tools(): Promise<readonly { readonly name: string; readonly inputSchema: unknown; readonly outputSchema?: unknown; readonly annotations?: unknown }[]>
  resources(): Promise<readonly { readonly uri: string; readonly mimeType?: string }[]>
  read(uri: string): Promise<readonly { readonly uri: string; readonly mimeType?: string; readonly text?: string; readonly blob?: string }[]>
  readonly pid: number | null
  close(): Promise<void>
}

const info = { name: 'test', version: '1.0.0' }

interface AnyClient {
  callTool(params: { name: string; arguments: Record<string, unknown> }, options?: never): Promise<unknown>
  listTools(): Promise<unknown>
  listResources(): Promise<unknown>
  readResource(params: { uri: string }): Promise<unknown>
  close(): Promise<void>
}

function agentOf(client: AnyClient, facts: { readonly version: string | undefined; readonly pid: number | null; call: Agent['call'] }): Agent {
  return {
    ...facts,
    tools: async () => ((await client.listTools()) as { tools: Awaited<ReturnType<Agent['tools']>> }).tools,
    resources: async () => ((await client.listResources()) as { resources: Awaited<ReturnType<Agent['resources']>> }).resources,
    read: async (uri) => ((await client.readResource({ uri })) as { contents: Awaited<ReturnType<Agent['read']>> }).contents,
    close: () => client.close(),
  }
}

/** The library of the protocol's second generation; by `revision` it speaks either. */
export async function modernAgent(flags: readonly string[], revision: 'modern' | 'legacy'): Promise<Agent> {
  const client = new ModernClient(info, { versionNegotiation: { mode: revision === 'modern' ? { pin: '2026-07-28' } : 'legacy' } })
  const transport = new ModernTransport({ command: process.execPath, args: [cliPath, 'mcp', '--quiet', ...flags], env: environment(), stderr: 'ignore' })
  await client.connect(transport)
  const call: Agent['call'] = async (name, args, options) =>
    (await client.callTool({ name, arguments: args }, { timeout: 120_000, ...options })) as unknown as Called
  return agentOf(client as unknown as AnyClient, { version: client.getNegotiatedProtocolVersion(), pid: transport.pid, call })
}

/** The library of the first generation. */
export async function firstAgent(flags: readonly string[]): Promise<Agent> {
  const client = new FirstClient(info)
  const transport = new FirstTransport({ command: process.execPath, args: [cliPath, 'mcp', '--quiet', ...flags], env: environment(), stderr: 'ignore' })
  await client.connect(transport)
  const call: Agent['call'] = async (name, args, options) =>
    (await client.callTool({ name, arguments: args }, undefined, { timeout: 120_000, ...options })) as unknown as Called
  return agentOf(client as unknown as AnyClient, { version: client.getServerVersion()?.name, pid: transport.pid, call })
}

function environment(): Record<string, string> {
  return Object.fromEntries(Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

export const generations = [
  ['the first library', (flags: readonly string[]) => firstAgent(flags)],
  ['the second library, as of 2025', (flags: readonly string[]) => modernAgent(flags, 'legacy')],
  ['the second library, as of 2026', (flags: readonly string[]) => modernAgent(flags, 'modern')],
] as const

/** Raw lines, for what no library would send. */
export class RawPeer {
  readonly child: ChildProcessWithoutNullStreams
  readonly #messages: Record<string, unknown>[] = []
  #waiting: (() => void)[] = []

  constructor(flags: readonly string[]) {
    this.child = spawn(process.execPath, [cliPath, 'mcp', '--quiet', ...flags])
    this.child.stdin.on('error', () => undefined)
    this.child.stderr.resume()
    createInterface({ input: this.child.stdout }).on('line', (line) => {
      this.#messages.push(JSON.parse(line) as Record<string, unknown>)
      for (const wake of this.#waiting.splice(0)) wake()
    })
  }

  send(message: unknown): void {
    this.sendLine(JSON.stringify(message))
  }

  sendLine(line: string | Uint8Array): void {
    this.child.stdin.write(line)
    this.child.stdin.write('\n')
  }

  /** The next message that fits, whenever it came. */
  async next(fits: (message: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
    for (;;) {
      const at = this.#messages.findIndex(fits)
      if (at !== -1) return this.#messages.splice(at, 1)[0] ?? {}
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve)
      })
    }
  }

  answerTo(id: unknown): Promise<Record<string, unknown>> {
    return this.next((message) => message['id'] === id && !('method' in message))
  }

  async initialize(protocolVersion = '2025-06-18'): Promise<Record<string, unknown>> {
    this.send({ jsonrpc: '2.0', id: 'init', method: 'initialize', params: { protocolVersion, capabilities: {}, clientInfo: info } })
    const answer = await this.answerTo('init')
    this.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    return answer
  }

  /** Its exit code, once it has ended. */
  async end(): Promise<number | null> {
    this.child.stdin.end()
    return this.ended()
  }

  async ended(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) await new Promise((resolve) => this.child.once('exit', resolve))
    return this.child.exitCode
  }
}
