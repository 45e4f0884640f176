import type { Command } from 'commander'
import { ownName } from './print.js'
import type { RunFlags } from './run-flags.js'
import { addLimits, addProgram, addSandbox } from './run-options.js'

const notes = (name: string): string => `
Speaks the Model Context Protocol on stdin and stdout; tools: run_code,
run_command, read_file, write_file, list_files. A connection has one sandbox,
made at the first call and gone with it. --upload and --mount put files into it,
--receipt and --download are done when the connection ends.

install writes the server into the settings of a client, with the flags that you
give here: ${name} mcp install cursor --memory 1g --policy strict
CLIENT is claude-code, claude-desktop, cursor, vscode, windsurf, codex,
gemini-cli or zed.`

export interface McpFlags extends RunFlags {
  readonly print?: true
  readonly as?: string
  readonly file?: string
}

export function addMcp(program: Command, finish: (code: number) => void): void {
  const command = program
    .command('mcp')
    .summary('be a server of tools for agents, or install it in a client')
    .description('Serves agents over the Model Context Protocol, in a sandbox of their own.')
    .argument('[ACTION]', 'install')
    .argument('[CLIENT]', 'where to install it')
    .usage('[OPTIONS]\n       glovebox mcp install CLIENT [--print] [OPTIONS]')
  addProgram(command)
  addLimits(command, { timeout: '60s a call' })
  addSandbox(command)
  command
    .optionsGroup('Installing:')
    .option('--print', 'print what would be written instead')
    .option('--as <NAME>', 'the name of the server in the client (glovebox)')
    .option('--file <FILE>', 'the settings file, where the client has another one')
    .optionsGroup('What we say:')
    .option('-q, --quiet', 'no remarks about limits that are not enforced')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', notes(ownName()))
    .action(async (action: string | undefined, client: string | undefined, flags: McpFlags) => {
      if (action === undefined) {
        const { mcp } = await import('./commands/mcp.js')
        finish(await mcp(flags))
        return
      }
      const { installMcp } = await import('./commands/mcp-install.js')
      finish(await installMcp({ action, client, flags, command }))
    })
}
