import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { BuildResult, TemplateListing } from '../../src/contract/templates.js'
import { whyNotBuilt } from '../templates/reachable.js'
import { skipGroup } from '../unless.js'
import { commandAtTerminal } from './at-terminal.js'
import { cli, collect, startCli } from './cli.js'

const folder = mkdtempSync(join(tmpdir(), 'gbx-cli-template-'))
const env = { GLOVEBOX_TEMPLATE_DIR: join(folder, 'store') }
const timeout = 300_000

afterAll(() => rmSync(folder, { recursive: true, force: true }))

function run(...args: string[]) {
  return cli(['template', ...args], { env })
}

describe('help', () => {
  test.each([
    ['template-help', ['--help']],
    ['template-build-help', ['build', '--help']],
    ['template-ls-help', ['ls', '--help']],
    ['template-inspect-help', ['inspect', '--help']],
    ['template-rm-help', ['rm', '--help']],
    ['template-pull-help', ['pull', '--help']],
    ['template-import-help', ['import', '--help']],
    ['template-prune-help', ['prune', '--help']],
  ])('%s is what its golden file says, within 80 columns', async (name, args) => {
    const { code, stdout, stderr } = await run(...args)
    expect([code, stderr, stdout.split('\n').filter((line) => line.length > 80)]).toEqual([0, '', []])
    await expect(stdout).toMatchFileSnapshot(`golden/${name}.txt`)
  })
})

describe('what is not there', () => {
  test('is told with the command that builds it', async () => {
    const { code, stderr } = await cli(['run', '--template', 'data', '--', 'true'], { env: { GLOVEBOX_TEMPLATE_DIR: join(folder, 'empty') } })
    expect([code, stderr]).toEqual([
      125,
      "glovebox: --template: 'data' has not been built on this machine; there are host, shell, python, node\nhint: glovebox template build data\n",
    ])
  })

  test('has no recipe, no page, and nothing to remove', async () => {
    expect([await run('build', 'nothing'), await run('inspect', 'nothing'), await run('rm', 'nothing'), await run('ls')]).toMatchObject([
      {
        code: 125,
        stdout: '',
        stderr: "glovebox: there is no recipe 'nothing'; there are data, node, polyglot, python, shell\nhint: glovebox template build data\n",
      },
      { code: 125, stdout: '', stderr: 'glovebox: there is no template nothing here\nhint: glovebox template ls\n' },
      { code: 1, stdout: '', stderr: 'glovebox: there is no template nothing\n' },
      { code: 0, stdout: '', stderr: 'glovebox: no template was built here yet; there are recipes for data, node, polyglot, python, shell\n' },
    ])
    expect(JSON.parse((await run('ls', '--json')).stdout)).toEqual({ templates: [] })
  })
})

const why = await whyNotBuilt(join(folder, 'try'))
if (why) console.log(`no template is built by these tests: ${why}`)

describe('a template', { timeout }, () => {
  skipGroup(why)

  test('whose build is stopped leaves nothing that is seen', async () => {
    const child = startCli(['template', 'build', 'shell'], env)
    const ended = collect(child)
    child.stderr.on('data', (bytes: Buffer) => void (bytes.includes('unpacking') && child.kill('SIGTERM')))
    const { code, stderr } = await ended
    expect([code, stderr.split('\n').at(-2)]).toEqual([143, 'glovebox: unpacking'])
    expect([readdirSync(join(env.GLOVEBOX_TEMPLATE_DIR, 'drafts')), JSON.parse((await run('ls', '--json')).stdout)]).toEqual([[], { templates: [] }])
  })

  test('is built, listed, shown, compared, used and removed', async () => {
    const built = await run('build', 'shell', '--json')
    const result = JSON.parse(built.stdout) as BuildResult
    expect([built.code, result.name, result.wasThere, result.id]).toEqual([0, 'shell', false, expect.stringMatching(/^sha256:[0-9a-f]{64}$/)])
    expect(built.stderr.split('\n').filter((line) => line !== '')).toEqual(expect.arrayContaining(['glovebox: unpacking', 'glovebox: keeping it']))

    const [head, line] = (await run('ls')).stdout.split('\n')
    expect([head?.split(/ {2,}/), line]).toEqual([
      ['NAME', 'ID', 'SIZE', 'BUILT', 'RECIPE', 'LANGUAGES', 'USED BY'],
      expect.stringContaining(`shell  ${result.id.slice(0, 19)}  `),
    ])

    const page = await run('inspect', 'shell', '--verify')
    expect([page.code, page.stdout]).toEqual([0, expect.stringMatching(/\n {4}bash \d[\s\S]*every file is what was built\n$/)])
    const listing = JSON.parse((await run('inspect', 'shell', '--verify', '--json')).stdout) as TemplateListing & { differences: unknown }
    expect([listing.id, listing.differences, listing.usedBy, listing.packages.length > 20]).toEqual([result.id, [], [], true])

    expect(await cli(['run', '-q', '--template', 'shell', '--', 'bash', '-c', 'test -x /usr/bin/bash && echo yes; which python3'], { env })).toMatchObject({
      code: 1,
      stdout: 'yes\n',
    })

    expect((await run('build', 'shell', '-q')).stdout).toMatch(/^template shell is up to date: sha256:/)
    expect([(await run('rm', 'shell')).code, readdirSync(join(env.GLOVEBOX_TEMPLATE_DIR, 'objects'))]).toEqual([0, []])
  })

  test('shows at a terminal how far it is, on one line that is gone at the end', async () => {
    process.env.GLOVEBOX_TEMPLATE_DIR = env.GLOVEBOX_TEMPLATE_DIR
    const seen = await commandAtTerminal(
      ['template', 'build', 'shell'],
      [
        ['expect', ' %'],
        ['expect', 'was built in'],
      ],
    ).finally(() => delete process.env.GLOVEBOX_TEMPLATE_DIR)
    expect([seen.failure, seen.code, seen.restored]).toEqual([null, 0, true])
    expect(seen.text).toMatch(/\r\u001b\[K(?:unpacking|verifying every package) +█+░* +\d+ %/)
    expect(seen.text.split('\n').length).toBeLessThan(4)
  })
})
