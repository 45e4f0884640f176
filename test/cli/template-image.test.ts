import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createPlatform, templateBuilder } from '../../src/compose.js'
import type { BuildResult } from '../../src/contract/templates.js'
import { image, layoutArchive, tar } from '../templates/images/archives.js'
import { push, startRegistry, unpackRegistry } from '../templates/images/registry.js'
import { whyNotBuilt } from '../templates/reachable.js'
import { skipGroup } from '../unless.js'
import { cli } from './cli.js'

const folder = mkdtempSync(join(tmpdir(), 'gbx-cli-image-'))
const templateDir = join(folder, 'store')
const env = { GLOVEBOX_TEMPLATE_DIR: templateDir }
const why = (await whyNotBuilt(templateDir)) || (await unpackRegistry(join(folder, 'registry')))
if (why) console.log(`no image is used by these tests: ${why}`)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

function run(...args: string[]) {
  return cli(['template', ...args], { env })
}

function archive(): Buffer {
  const { id } = templateBuilder({ templateDir }).inspect('busybox')
  const busybox = readFileSync(join(templateDir, 'objects', id.slice(7), 'root/usr/bin/busybox'))
  const links = ['sh', 'cat', 'echo'].map((name) => ({ name: `bin/${name}`, type: '2', target: 'busybox' }))
  return tar({ name: 'bin/busybox', content: busybox, mode: 0o4755 }, ...links, {
    name: 'app/say.sh',
    content: '#!/bin/sh\necho "said $1 in $PWD"\n',
    mode: 0o755,
  })
}

async function canBeRoot(): Promise<boolean> {
  await using platform = createPlatform()
  return (await platform.probe()).some(({ driver, features }) => driver === 'bwrap' && features['root-overlay'].available)
}

describe('images at the command line', { timeout: 300_000 }, () => {
  skipGroup(why)
  const made = why ? image([]) : image([archive()], { Env: ['PATH=/bin'], WorkingDir: '/app', Entrypoint: ['/app/say.sh'], Cmd: ['hello'] })

  test('an archive is imported, shown with all that is not as it was, and run by its own command', async () => {
    writeFileSync(join(folder, 'sayer.tar'), layoutArchive(made))
    const imported = await run('import', join(folder, 'sayer.tar'))
    expect([imported.code, imported.stdout]).toEqual([0, expect.stringMatching(/^template sayer was made in .*: sha256:[0-9a-f]{64} \(/)])
    expect(imported.stderr).toContain('glovebox: not as in the image: /bin/busybox its set-id bit is taken away\n')
    const { stdout } = await run('show', 'sayer')
    expect(stdout).toMatch(/workdir\s+\/app\n[\s\S]*command\s+\["\/app\/say\.sh","hello"\]/)
    expect((await run('list')).stdout).toMatch(/sayer +sha256:\w{12} .* import +shell +-\n/)
    expect(await cli(['run', '-q', '--template', 'sayer'], { env })).toMatchObject({ code: 0, stdout: 'said hello in /app\n' })
    expect(await cli(['run', '-q', '--template', 'sayer', '--', 'cat', '/app/say.sh'], { env })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('#!/bin/sh'),
    })
    expect(await cli(['run', '-q', '--template', 'busybox'], { env })).toMatchObject({ stderr: expect.stringContaining("missing required argument 'COMMAND'") })
    expect(await cli(['run', '-q', '--template', 'sayer:1'], { env })).toMatchObject({
      code: 125,
      stderr: expect.stringMatching(/^glovebox: --template: there is no 'sayer:1'; there are host, /),
    })
  })

  test('an image is pulled; what goes wrong is one line', async () => {
    await using registry = await startRegistry(join(folder, 'registry'))
    await push(registry.host, { name: 'team/sayer', tag: '1', made })
    const pulled = await run('pull', `docker://${registry.host}/team/sayer:1`, '--json')
    const result = JSON.parse(pulled.stdout) as BuildResult
    expect([pulled.code, result.name, result.image?.source]).toEqual([0, 'sayer-1', `docker://${registry.host}/team/sayer@${result.image?.digest ?? ''}`])
    expect(pulled.stderr).toMatch(/^glovebox: asking for the image \(.*\)\nglovebox: downloading \(1 layer, /)
    expect(await run('pull', '-q', `${registry.host}/team/sayer:2`)).toMatchObject({
      code: 125,
      stdout: '',
      stderr: expect.stringMatching(/^glovebox: \S+ has no tag 2 of team\/sayer/),
    })
    expect(await run('pull', '-q', '--login', 'me', `${registry.host}/team/sayer:1`)).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('there is no password'),
    })
  })

  test('a folder is built, and says which line fails', async () => {
    if (!(await canBeRoot())) return
    const context = join(folder, 'made')
    mkdirSync(context)
    writeFileSync(join(context, 'Dockerfile'), 'FROM sayer\nARG WHO=nobody\nRUN echo "made for $WHO" > /app/who && echo working\nCMD ["again"]\n')
    const built = await run('build', context, '--build-arg', 'WHO=you')
    expect([built.code, built.stderr]).toEqual([0, expect.stringMatching(/glovebox: running \(\[1\/1\] RUN echo .*\)\nworking\n/)])
    expect(await cli(['run', '-q', '--template', 'made', '--', 'cat', 'who'], { env })).toMatchObject({ stdout: 'made for you\n' })
    expect(await cli(['run', '-q', '--template', 'made'], { env })).toMatchObject({ stdout: 'said again in /app\n' })
    writeFileSync(join(context, 'Dockerfile'), 'FROM sayer\nRUN echo first\nRUN echo oh no >&2; exit 3\n')
    expect(await run('build', '-q', context)).toMatchObject({
      code: 125,
      stdout: '',
      stderr: 'glovebox: Dockerfile:3: RUN echo oh no >&2; exit 3: exit code 3: oh no\nhint: glovebox template build --help\n',
    })
  })

  test('what nothing needs is removed, with its size, and templates stay', async () => {
    const trial = JSON.parse((await run('prune', '--dry-run', '--json')).stdout) as { found: { what: string; bytes: number }[]; bytes: number }
    expect([trial.found.map(({ what }) => what), trial.bytes > 0]).toEqual([['templates without a name', 'layers', 'steps'], true])
    expect(readdirSync(join(templateDir, 'blobs'))).not.toEqual([])
    const pruned = await run('prune')
    expect([pruned.code, pruned.stdout]).toEqual([0, expect.stringMatching(/layers: .*\n(?:steps: .*\n)?.* freed\n$/)])
    expect([readdirSync(join(templateDir, 'blobs')), readdirSync(join(templateDir, 'steps'))]).toEqual([[], []])
    expect((JSON.parse((await run('prune', '--json')).stdout) as { bytes: number }).bytes).toBe(0)
    expect(await cli(['run', '-q', '--template', 'sayer'], { env })).toMatchObject({ code: 0 })
  })
})
