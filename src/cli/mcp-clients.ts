/** Where the common clients of the Model Context Protocol keep their servers, and in which form. */
import { homedir } from 'node:os'
import { join } from 'node:path'

export interface ServerEntry {
  readonly command: string
  readonly args: readonly string[]
}

export interface McpClient {
  readonly name: string
  readonly title: string
  /** On this machine, for this user. */
  file(machine?: Machine): string
  readonly form: { readonly type: 'json'; readonly section: string; entry(server: ServerEntry): unknown } | { readonly type: 'toml'; readonly section: string }
  /** What the user does for it to be seen. */
  readonly then: string
}

export interface Machine {
  readonly platform: NodeJS.Platform
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
}

const thisMachine = (): Machine => ({ platform: process.platform, home: homedir(), env: process.env })

/** Where programs with windows keep what is a user's. */
function settingsFolder({ platform, home, env }: Machine): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support')
  if (platform === 'win32') return env.APPDATA ?? join(home, 'AppData', 'Roaming')
  return env.XDG_CONFIG_HOME || join(home, '.config')
}

const plain = ({ command, args }: ServerEntry): unknown => ({ command, args })
const typed = ({ command, args }: ServerEntry): unknown => ({ type: 'stdio', command, args })
const usual = { type: 'json', section: 'mcpServers', entry: plain } as const

export const mcpClients: readonly McpClient[] = [
  {
    name: 'claude-code',
    title: 'Claude Code',
    file: ({ home, env } = thisMachine()) => join(env.CLAUDE_CONFIG_DIR || home, '.claude.json'),
    form: { ...usual, entry: typed },
    then: 'start a new session; /mcp shows it',
  },
  {
    name: 'claude-desktop',
    title: 'Claude Desktop',
    file: (machine = thisMachine()) => join(settingsFolder(machine), 'Claude', 'claude_desktop_config.json'),
    form: usual,
    then: 'quit Claude Desktop and start it again',
  },
  {
    name: 'cursor',
    title: 'Cursor',
    file: ({ home } = thisMachine()) => join(home, '.cursor', 'mcp.json'),
    form: usual,
    then: 'restart Cursor, or switch the server on in its settings',
  },
  {
    name: 'vscode',
    title: 'Visual Studio Code',
    file: (machine = thisMachine()) => join(settingsFolder(machine), 'Code', 'User', 'mcp.json'),
    form: { type: 'json', section: 'servers', entry: typed },
    then: 'run "MCP: List Servers" in the command palette and start it',
  },
  {
    name: 'windsurf',
    title: 'Windsurf',
    file: ({ home } = thisMachine()) => join(home, '.codeium', 'windsurf', 'mcp_config.json'),
    form: usual,
    then: 'restart Windsurf, or refresh its list of servers',
  },
  {
    name: 'codex',
    title: 'Codex',
    file: ({ home, env } = thisMachine()) => join(env.CODEX_HOME || join(home, '.codex'), 'config.toml'),
    form: { type: 'toml', section: 'mcp_servers' },
    then: 'start a new session; /mcp shows it',
  },
  {
    name: 'gemini-cli',
    title: 'Gemini CLI',
    file: ({ home } = thisMachine()) => join(home, '.gemini', 'settings.json'),
    form: usual,
    then: 'start a new session; /mcp shows it',
  },
  {
    name: 'zed',
    title: 'Zed',
    file: (machine = thisMachine()) =>
      machine.platform === 'win32' ? join(settingsFolder(machine), 'Zed', 'settings.json') : join(zedFolder(machine), 'zed', 'settings.json'),
    form: { type: 'json', section: 'context_servers', entry: ({ command, args }) => ({ source: 'custom', command, args, env: {} }) },
    then: 'Zed sees it at once; its agent panel lists the tools',
  },
]

/** Zed keeps its settings below ~/.config on a Mac too. */
function zedFolder({ platform, home, env }: Machine): string {
  return platform === 'linux' && env.XDG_CONFIG_HOME ? env.XDG_CONFIG_HOME : join(home, '.config')
}
