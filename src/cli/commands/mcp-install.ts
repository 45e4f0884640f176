import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { policyInForce, readPolicy } from '../../compose.js'
import { SandboxError } from '../../contract/errors.js'
import { JsoncProblem, parseJsonc, withMember } from '../jsonc.js'
import { type McpClient, mcpClients, type ServerEntry } from '../mcp-clients.js'
import { flagWords } from '../mcp-flag-words.js'
import type { McpFlags } from '../mcp-options.js'
import { say } from '../print.js'
import { parseRunFlags } from '../run-flags.js'
import { readSettings, replaceSettings, type SettingsFile } from '../settings-file.js'
import { writeOut } from '../streams.js'
import { TomlProblem, tomlText, withTable } from '../toml-table.js'
import { checkTransfers } from '../transfers.js'

export interface McpInstalling {
  readonly action: string
  readonly client: string | undefined
  readonly flags: McpFlags
  readonly command: Command
}

/** Writes the server into a client's settings, or prints what would be written. */
export async function installMcp({ action, client: name, flags, command }: McpInstalling): Promise<number> {
  if (action !== 'install') throw new SandboxError('invalid', `mcp: there is no '${action.slice(0, 40)}'; expected install`, { hint: 'glovebox mcp --help' })
  const client = clientOf(name)
  checkFlags(flags)
  const as = serverName(flags.as)
  const server = serverEntry(flagWords(command))
  const file = flags.file === undefined ? client.file() : resolve(flags.file)
  if (flags.print) {
    say(`for ${client.title}, in ${file}:`)
    await writeOut(changed('', { client, as, server }))
    return 0
  }
  const settings = readSettings(file)
  const text = changedIn(settings, { client, as, server })
  if (text === settings.text) {
    say(`${client.title} has it already: ${settings.path}`)
    return 0
  }
  const kept = replaceSettings(settings, text)
  say(`${as} is a server of ${client.title} now: ${settings.path}`)
  if (kept !== undefined) say(`what was there before is in ${kept}`)
  say(`next: ${client.then}`)
  return 0
}

function clientOf(name: string | undefined): McpClient {
  const found = mcpClients.find((client) => client.name === name)
  if (found) return found
  const known = mcpClients.map((client) => client.name).join(', ')
  const problem = name === undefined ? 'install: CLIENT is missing' : `install: there is no client '${name.slice(0, 40)}' that we know`
  throw new SandboxError('invalid', `${problem}; expected one of ${known}`, { hint: `glovebox mcp install ${mcpClients[0]?.name ?? ''}` })
}

/** What is wrong with the flags is told now, and not by a server that does not start. */
function checkFlags(flags: McpFlags): void {
  const own = flags.policy === undefined ? undefined : readPolicy(flags.policy)
  parseRunFlags(['mcp'], flags, policyInForce(own))
  checkTransfers(flags)
}

function serverName(name = 'glovebox'): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name))
    throw new SandboxError('invalid', `--as: expected letters, digits, - and _, at most 64, got '${name.slice(0, 40)}'`, { hint: 'glovebox mcp --help' })
  return name
}

/** Clients have a PATH of their own, so ours is named whole; what npx runs is gone tomorrow, so that is asked for again. */
function serverEntry(words: readonly string[]): ServerEntry {
  const main = fileURLToPath(new URL('../main.js', import.meta.url))
  if (/[\\/]_npx[\\/]/.test(main)) return { command: 'npx', args: ['-y', 'glovebox', 'mcp', ...words] }
  return { command: process.execPath, args: [main, 'mcp', ...words] }
}

interface Wanted {
  readonly client: McpClient
  readonly as: string
  readonly server: ServerEntry
}

function changed(text: string, { client: { form }, as, server }: Wanted): string {
  if (form.type === 'json') return withMember(text, { path: [form.section, as], value: form.entry(server) })
  const lines = [`command = ${tomlText(server.command)}`, `args = [${server.args.map(tomlText).join(', ')}]`]
  return withTable(text, { parent: form.section, name: as, lines })
}

/** What cannot be read is never written over. */
function changedIn({ path, text }: SettingsFile, wanted: Wanted): string {
  try {
    const result = changed(text, wanted)
    if (wanted.client.form.type === 'json') parseJsonc(result)
    return result
  } catch (error) {
    if (!(error instanceof JsoncProblem) && !(error instanceof TomlProblem)) throw error
    const hint = `glovebox mcp install ${wanted.client.name} --print`
    throw new SandboxError('conflict', `${path} is left as it is: ${error.message}`, { hint, cause: error })
  }
}
