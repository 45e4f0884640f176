import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { parseJsonc, withMember } from '../../src/cli/jsonc.js'
import { mcpClients } from '../../src/cli/mcp-clients.js'
import { withTable } from '../../src/cli/toml-table.js'
import { cli, cliPath, parseAs } from './cli.js'

const folder = mkdtempSync(join(tmpdir(), 'gbx-install-'))
afterAll(() => rmSync(folder, { recursive: true }))

let home: string
beforeEach(() => {
  home = mkdtempSync(join(folder, 'home-'))
})

const install = (args: readonly string[]) =>
  cli(['mcp', 'install', ...args], { env: { HOME: home, XDG_CONFIG_HOME: '', CODEX_HOME: '', CLAUDE_CONFIG_DIR: '' } })

/** Where each is on Linux, by what its makers say. */
const places: Readonly<Record<string, string>> = {
  'claude-code': '.claude.json',
  'claude-desktop': '.config/Claude/claude_desktop_config.json',
  cursor: '.cursor/mcp.json',
  vscode: '.config/Code/User/mcp.json',
  windsurf: '.codeium/windsurf/mcp_config.json',
  codex: '.codex/config.toml',
  'gemini-cli': '.gemini/settings.json',
  zed: '.config/zed/settings.json',
}

describe('glovebox mcp install', { timeout: 60_000 }, () => {
  test.each(mcpClients.map((client) => client.name))('%s: makes its file, private, with the server in it', async (name) => {
    const { code, stdout, stderr } = await install([name, '--memory', '1g'])
    expect([code, stdout]).toEqual([0, ''])
    const file = join(home, places[name] ?? '')
    expect(stderr).toContain(file)
    const text = readFileSync(file, 'utf8')
    expect(text).toContain(JSON.stringify(cliPath))
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const words = [cliPath, 'mcp', '--memory', '1g']
    if (name === 'codex')
      expect(text).toBe(
        `[mcp_servers.glovebox]\ncommand = ${JSON.stringify(process.execPath)}\nargs = [${words.map((word) => JSON.stringify(word)).join(', ')}]\n`,
      )
    else
      expect(Object.values(parseAs<Record<string, Record<string, unknown>>>(text))[0]?.['glovebox']).toMatchObject({ command: process.execPath, args: words })
    expect((await install([name, '--memory', '1g'])).stderr).toContain('has it already')
  })

  test('keeps everything else, comments and mode too, follows a link, and keeps the old file', async () => {
    const real = join(home, 'dotfiles', 'settings.json')
    const before = '// mine\n{\n\t"theme": "dark", // really\n\t"context_servers": {\n\t\t"other": { "command": "x", "args": [], },\n\t},\n}\n'
    mkdirSync(dirname(real))
    writeFileSync(real, before)
    chmodSync(real, 0o640)
    const file = join(home, places['zed'] ?? '')
    mkdirSync(dirname(file), { recursive: true })
    symlinkSync(real, file)
    const { code, stderr } = await install(['zed'])
    expect([code, stderr]).toEqual([0, expect.stringContaining('.before-glovebox')])
    const after = readFileSync(real, 'utf8')
    expect(
      after.startsWith('// mine\n{\n\t"theme": "dark", // really\n\t"context_servers": {\n\t\t"other": { "command": "x", "args": [], },\n\t\t"glovebox": {\n'),
    ).toBe(true)
    expect(parseJsonc(after).value).toMatchObject({ theme: 'dark', context_servers: { other: { command: 'x' }, glovebox: { source: 'custom' } } })
    expect([statSync(real).mode & 0o777, readFileSync(`${real}.before-glovebox`, 'utf8'), existsSync(file)]).toEqual([0o640, before, true])
  })

  test.each([
    ['cursor', '{ "mcpServers": { '],
    ['cursor', '{ "mcpServers": [] }'],
    ['cursor', '{ "mcpServers": {}, "mcpServers": {} }'],
    ['codex', 'mcp_servers = { other = { command = "x" } }\n'],
    ['codex', 'text = """\nno end\n'],
  ])('%s: leaves alone what it cannot read: %j', async (name, text) => {
    const file = join(home, places[name] ?? '')
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    const { code, stderr } = await install([name])
    expect([code, stderr]).toEqual([125, expect.stringMatching(/is left as it is.*\n.*install \w+ --print/)])
    expect([readFileSync(file, 'utf8'), existsSync(`${file}.before-glovebox`)]).toEqual([text, false])
  })

  test('prints instead, writes nothing, and makes paths absolute', async () => {
    const policy = join(folder, 'p.json')
    writeFileSync(policy, '{}')
    const { code, stdout } = await install(['vscode', '--print', '--as', 'box', '--policy', policy, '--mount', `${folder}:/mnt/here`, '-e', 'A=1', '-e', 'B=2'])
    expect(code).toBe(0)
    expect(parseAs<unknown>(stdout)).toEqual({
      servers: {
        box: {
          type: 'stdio',
          command: process.execPath,
          args: [cliPath, 'mcp', '--env', 'A=1', '--env', 'B=2', '--mount', `${folder}:/mnt/here`, '--policy', policy],
        },
      },
    })
    expect(existsSync(join(home, '.config'))).toBe(false)
  })

  test.each([
    [['emacs'], /there is no client 'emacs' that we know; expected one of claude-code, .*zed/],
    [[], /CLIENT is missing/],
    [['cursor', '--memory', 'lots'], /--memory/],
    [['cursor', '--as', 'a b'], /--as/],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await install(args)
    expect([code, stderr]).toEqual([125, expect.stringMatching(message)])
    expect(existsSync(join(home, '.cursor'))).toBe(false)
  })
})

describe('a member put into JSON with comments', () => {
  test.each([
    ['', '{\n  "a": {\n    "b": 1\n  }\n}\n'],
    ['{}', '{\n  "a": {\n    "b": 1\n  }\n}'],
    ['{"a": {"b": 7}}', '{"a": {"b": 1}}'],
    ['{\n    "x": "}, //" // c\n}', '{\n    "x": "}, //", // c\n    "a": {\n        "b": 1\n    }\n}'],
    ['{\n  // only a comment\n}', '{\n  // only a comment\n  "a": {\n    "b": 1\n  }\n}'],
  ])('%j becomes %j', (text, expected) => {
    expect(withMember(text, { path: ['a', 'b'], value: 1 })).toBe(expected)
  })
})

describe('a table put into TOML', () => {
  const table = { parent: 'mcp_servers', name: 'glovebox', lines: ['command = "x"'] }
  test.each([
    ['model = "m"\n', 'model = "m"\n\n[mcp_servers.glovebox]\ncommand = "x"\n'],
    ['[mcp_servers.glovebox]\ncommand = "old"\nargs = []\n\n# next\n[other]\na = 1\n', '[mcp_servers.glovebox]\ncommand = "x"\n\n# next\n[other]\na = 1\n'],
    ['[mcp_servers."glovebox"]\ncommand = "old"\n', '[mcp_servers.glovebox]\ncommand = "x"\n'],
    ["t = '''\n[mcp_servers.glovebox]\n'''\n", "t = '''\n[mcp_servers.glovebox]\n'''\n\n[mcp_servers.glovebox]\ncommand = \"x\"\n"],
  ])('%j becomes %j', (text, expected) => {
    expect(withTable(text, table)).toBe(expected)
  })
})
