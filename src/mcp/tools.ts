/** The tools, each with what it takes and gives. */
import type { CallToolResult, McpServer, ToolAnnotations } from '@modelcontextprotocol/server'
import type * as z from 'zod'
import { failure } from './answers.js'
import type { Connection, Context } from './connection.js'
import { listFiles, readFile, writeFile } from './file-tools.js'
import { runCode } from './run-code.js'
import { runCommand } from './run-command.js'
import * as schemas from './schemas.js'

interface Tool<Input extends z.ZodType, Output extends z.ZodType> {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: Input
  readonly output: Output
  readonly annotations: ToolAnnotations
  readonly act: (connection: Connection, input: z.output<Input>, context: Context) => Promise<CallToolResult>
}

const changes = { readOnlyHint: false, openWorldHint: false } as const
const reads = { readOnlyHint: true, openWorldHint: false } as const

export function addTools(server: McpServer, connection: Connection): void {
  add(server, connection, {
    name: 'run_code',
    title: 'Run code',
    description:
      'Runs code in an interpreter that keeps its variables, imports and functions from call to call. Gives what it printed, the value of the last expression, figures as images with their data, tracebacks, and the files it made below /workspace.',
    input: schemas.runCodeInput,
    output: schemas.runCodeOutput,
    annotations: { ...changes, destructiveHint: false, idempotentHint: false },
    act: runCode,
  })
  add(server, connection, {
    name: 'run_command',
    title: 'Run a command',
    description: 'Runs a line of shell in the sandbox and gives its exit code and what it printed. Nothing of the shell but files stays for the next call.',
    input: schemas.runCommandInput,
    output: schemas.runCommandOutput,
    annotations: { ...changes, destructiveHint: true, idempotentHint: false },
    act: runCommand,
  })
  addFileTools(server, connection)
}

function addFileTools(server: McpServer, connection: Connection): void {
  add(server, connection, {
    name: 'read_file',
    title: 'Read a file',
    description: 'Reads a file of the sandbox, or a part of it: text as text, pictures as images, anything else as base64.',
    input: schemas.readFileInput,
    output: schemas.readFileOutput,
    annotations: reads,
    act: readFile,
  })
  add(server, connection, {
    name: 'write_file',
    title: 'Write a file',
    description: 'Writes a file of the sandbox, with the folders above it. Replaces what is there, unless append is set.',
    input: schemas.writeFileInput,
    output: schemas.writeFileOutput,
    annotations: { ...changes, destructiveHint: true, idempotentHint: true },
    act: writeFile,
  })
  add(server, connection, {
    name: 'list_files',
    title: 'List files',
    description: 'Lists a folder of the sandbox, /workspace unless told otherwise.',
    input: schemas.listFilesInput,
    output: schemas.listFilesOutput,
    annotations: reads,
    act: listFiles,
  })
}

function add<Input extends z.ZodType, Output extends z.ZodType>(server: McpServer, connection: Connection, tool: Tool<Input, Output>): void {
  const { name, title, description, input, output, annotations, act } = tool
  const config = { title, description, inputSchema: input as z.ZodType, outputSchema: output as z.ZodType, annotations: { title, ...annotations } }
  server.registerTool(name, config, async (given: unknown, context: Context) => {
    try {
      return await connection.turns.take(() => act(connection, given as z.output<Input>, context), context.mcpReq.signal)
    } catch (error) {
      return failure(error)
    }
  })
}
