import { JsoncProblem, parseJsonc, withMember } from '../../../src/cli/jsonc.js'
import { TomlProblem, withTable } from '../../../src/cli/toml-table.js'
import { type FuzzTarget, isSame, textIn, unlessRefused } from '../target.js'

const member = { path: ['mcpServers', 'glovebox'], value: { command: 'g' } } as const
const table = { parent: 'mcp_servers', name: 'glovebox', lines: ['command = "g"'] }
const isJsonc = (error: unknown): boolean => error instanceof JsoncProblem
const isToml = (error: unknown): boolean => error instanceof TomlProblem

const valueOf = (node: unknown): string =>
  JSON.stringify(node, (key, value: unknown) => (['start', 'end', 'from', 'to', 'at'].includes(key) ? undefined : value))

/** Settings of other programs that something is put into: what is there stays, and putting it in twice is putting it in once. */
export const target: FuzzTarget = {
  name: 'settings-files',
  most: 400,
  seeds: [
    '{"mcpServers": {"a": 1, /* c */}, // d\n}',
    '[mcp_servers.x]\ncommand = "a"\n',
    '{}',
    '[a]\nb = 1\n["c.d"]\n',
    '{"mcpServers":{"glovebox":{"x":[1,2]}}}',
    '[mcp_servers.glovebox]\na = 1\n[z]\n',
    '# only\n',
  ],
  run(bytes) {
    const text = textIn(bytes)
    unlessRefused(() => parseJsonc(text), isJsonc)
    const added = unlessRefused(() => withMember(text, member), isJsonc)
    if (added !== undefined) isSame(valueOf(parseJsonc(withMember(added, member))), valueOf(parseJsonc(added)), 'what is put in twice is there once')
    const tabled = unlessRefused(() => withTable(text, table), isToml)
    if (tabled !== undefined) isSame(withTable(tabled, table), tabled, 'what is put in twice is there once')
  },
}
