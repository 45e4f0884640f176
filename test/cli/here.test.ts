import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { skipGroup } from '../unless.js'
import { type Account, accounts, gloveboxAs, makeOwn, self } from './accounts.js'
import { type CliResult, parseAs } from './cli.js'
import { isBwrapReady } from './machine.js'

let top: string
let project: string

const shell = (script: string, cwd: string, { wrapper }: Account): string => {
  const [file = '', ...rest] = [...wrapper, '/bin/sh', '-ec', script]
  const { status, stdout, stderr } = spawnSync(file, rest, { cwd, encoding: 'utf8', env: { PATH: process.env.PATH, HOME: '/nonexistent' } })
  if (status !== 0) throw new Error(`${stdout}${stderr}`)
  return stdout
}

const glovebox = (account: Account, args: readonly (string | Buffer)[], cwd = project): Promise<CliResult> => gloveboxAs(account, args, { top, cwd })

const here = (account: Account, script: string, flags: readonly string[] = []): Promise<CliResult> =>
  glovebox(account, ['run', '-q', '--driver', 'bwrap', '--timeout', '120s', '--here', ...flags, '--', '/bin/sh', '-ec', script])

/** The processor time of all that was started here and has ended: what else goes on on the machine does not stretch it as it does the time of a clock. */
function usedMs(): number {
  const [, fields = ''] = readFileSync('/proc/self/stat', 'latin1').split(') ')
  const [user = 0, system = 0] = fields.split(' ').slice(13, 15).map(Number)
  return (user + system) * 10
}

/** What a user closed to itself only root can read. */
function contentOf(path: string): string {
  const isClosed = process.getuid?.() !== 0 && (statSync(path).mode & 0o400) === 0
  return isClosed ? 'closed' : readFileSync(path, 'hex')
}

/** Everything that can be seen of a tree, but for what depends on when and where it was written. */
function photograph(folder: string, { times = false } = {}): string[] {
  const seen = (name: string): string[] => {
    const path = join(folder, name)
    const status = lstatSync(path)
    const isIndex = name === '.git/index' && !times
    const content = status.isSymbolicLink() ? readlinkSync(path) : status.isFile() && !isIndex ? contentOf(path) : ''
    const when = times ? ` ${status.ino} ${status.mtimeMs} ${status.ctimeMs}` : ''
    const below = status.isDirectory() ? readdirSync(path).flatMap((each) => seen(join(name, each))) : []
    return [`${name} ${status.mode.toString(8)} ${status.uid} ${content}${when}`, ...below]
  }
  return seen('.').sort()
}

const git = 'git -c user.name=Ann -c user.email=ann@example.org -c init.defaultBranch=main'
const clock = 'export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z HOME=/tmp; umask 022'

function makeProject(account: Account): void {
  mkdirSync(project)
  chownSync(project, account.uid, account.uid)
  const script = `${clock}
    ${git} init -q .
    for name in README.md doomed.txt old-name.txt tool.sh swap-file; do echo "$name" > $name; done
    mkdir -p src/deep swap-dir/inner back; echo main > src/main.c; echo deep > src/deep/file; echo in > swap-dir/inner/file; echo old > back/old
    ${git} add -A; ${git} commit -qm first`
  shell(script, project, account)
  // So that nothing is younger than the command that is run next.
  shell('sleep 0.05', project, account)
}

const changing = `${clock}
  echo more >> README.md
  rm doomed.txt
  mv old-name.txt new-name.txt
  printf '\\000\\001binary' > blob.bin
  ln -s ../../outside escape
  chmod 755 tool.sh
  rm -r swap-dir; echo now a file > swap-dir
  rm swap-file; mkdir swap-file; echo inner > swap-file/inner
  rm -r back; echo file > back; rm back; mkdir back; echo again > back/again
  mkdir -p fresh/empty; echo f > fresh/file
  mv src source
  ${git} add -A; ${git} commit -qm second
  chmod 700 fresh; echo closed > closed; chmod 000 closed`

beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), 'gbx-here-')))
  chmodSync(top, 0o755)
  project = join(top, 'project')
})

afterEach(() => rmSync(top, { recursive: true, force: true }))

describe.each(accounts)('run --here as $name', (account) => {
  skipGroup(!isBwrapReady && 'bwrap is not ready here: ./glovebox doctor')
  beforeEach(() => {
    makeOwn(account, top, ['home', 'changes'])
    makeProject(account)
  })

  test('leaves a repository alone until its changes are applied, and then it is as if the command had run there', async () => {
    const control = join(top, 'control')
    cpSync(project, control, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
    shell(`chown -R ${account.uid}:${account.uid} ${control}`, top, self)
    shell(changing, control, account)
    const before = photograph(project, { times: true })
    const run = await here(account, changing, ['--json'])
    expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' })
    expect(photograph(project, { times: true })).toEqual(before)
    const { changes } = parseAs<{ changes: { id: string; changes: { change: string; path: string }[] } }>(run.stdout)
    const rows = changes.changes.filter(({ path }) => !path.startsWith('.git/')).map(({ change, path }) => `${change} ${path}`)
    expect(rows).toEqual([
      'M README.md',
      'A back/again',
      'D back/old',
      'A blob.bin',
      'A closed',
      'D doomed.txt',
      'A escape',
      'A fresh',
      'A fresh/empty',
      'A fresh/file',
      'A new-name.txt',
      'D old-name.txt',
      'A source',
      'A source/deep',
      'A source/deep/file',
      'A source/main.c',
      'D src',
      'D src/deep',
      'D src/deep/file',
      'D src/main.c',
      'M swap-dir',
      'D swap-dir/inner',
      'D swap-dir/inner/file',
      'M swap-file',
      'A swap-file/inner',
      'M tool.sh',
    ])
    const shown = await glovebox(account, ['changes', changes.id.slice(0, 5)])
    expect(shown.stdout).toContain('A  escape  → ../../outside, leads out of the folder\n')
    expect(shown.stdout).toMatch(/^M {2}\.git: \d+ files$/m)
    expect(shown.stdout).toContain('--- a/README.md\n+++ b/README.md\n@@ -1 +1,2 @@\n README.md\n+more\n')
    expect(shown.stdout).toContain('+++ b/blob.bin\nbinary, or too large to show\n')
    expect(await glovebox(account, ['apply', '-q'])).toMatchObject({ code: 0, stderr: '', stdout: '' })
    expect(photograph(project)).toEqual(photograph(control))
    expect(shell(`HOME=/tmp; ${git} fsck 2>&1; ${git} log --format=%s; ${git} status --porcelain`, project, account)).toBe(
      shell(`HOME=/tmp; ${git} fsck 2>&1; ${git} log --format=%s; ${git} status --porcelain`, control, account),
    )
    expect((await glovebox(account, ['changes'])).stderr).toContain('no changes are pending')
  }, 600_000)

  test('says on stderr what changed and how to go on, and nothing of its own on stdout', async () => {
    const run = await glovebox(account, ['run', '--driver', 'bwrap', '--here', '--', '/bin/sh', '-c', 'echo told; echo new > new; exit 3'])
    expect([run.code, run.stdout]).toEqual([3, 'told\n'])
    expect(run.stderr).toMatch(
      /^A {2}new {2}4 bytes\n\n--- \/dev\/null\n\+\+\+ b\/new\n@@ -0,0 \+1 @@\n\+new\nglovebox: 1 change of .*project kept aside: glovebox apply [a-z0-9]{8} takes it over, glovebox drop [a-z0-9]{8} forgets it\n$/m,
    )
    const id = /apply ([a-z0-9]{8})/.exec(run.stderr)?.[1] ?? ''
    expect((await glovebox(account, ['apply'], join(project, 'src'))).stderr).toBe(
      `glovebox: no changes of ${project}/src are pending; of ${project}, which it is in, there are: ${id}\nhint: glovebox changes ${id}\n`,
    )
    expect(await glovebox(account, ['drop'])).toMatchObject({ code: 0, stderr: `glovebox: dropped 1 change of ${project}\n` })
    expect((await glovebox(account, ['apply'])).stderr).toContain(`no changes of ${project} are pending`)
    expect(existsSync(join(project, 'new'))).toBe(false)
    const idle = await glovebox(account, ['run', '--driver', 'bwrap', '--here', '--', '/bin/sh', '-c', 'touch README.md; cat README.md; pwd'])
    expect([idle.stdout, idle.stderr]).toEqual(['README.md\n/workspace\n', expect.stringContaining('glovebox: nothing was changed\n')])
    expect(readdirSync(join(top, 'changes')).filter((name) => name !== 'locks')).toEqual([])
  })

  test('counts what it lists, and so do the commands after it', async () => {
    const script = 'mkdir -p fresh/in empty .git/hollow; echo 1 > fresh/a; echo 2 > fresh/in/b; rm -r src; rm doomed.txt'
    const run = await glovebox(account, ['run', '--driver', 'bwrap', '--here', '--', '/bin/sh', '-c', script])
    const lines = run.stderr.split('\n').filter((line) => /^[AMD] {2}/.test(line))
    expect(lines.map((line) => line.split(/ {2}/).slice(0, 2).join(' '))).toEqual([
      'D doomed.txt',
      'A empty/',
      'A fresh/a',
      'A fresh/in/b',
      'D src/deep/file',
      'D src/main.c',
      'M .git: 1 folder',
    ])
    expect(run.stderr).toContain('glovebox: 7 changes of ')
    expect((await glovebox(account, ['changes'])).stdout).toContain('  7 changes  ')
    expect((await glovebox(account, ['apply', '--', 'fresh/in/b'])).stderr).toBe(`glovebox: applied 1 change to ${project}, 6 still pending\n`)
    expect((await glovebox(account, ['apply', '--', 'src'])).stderr).toBe(`glovebox: applied 2 changes to ${project}, 4 still pending\n`)
    expect((await glovebox(account, ['drop'])).stderr).toBe(`glovebox: dropped 4 changes of ${project}\n`)
    expect([existsSync(join(project, 'fresh/in/b')), existsSync(join(project, 'src'))]).toEqual([true, false])
  }, 60_000)

  test('keeps what lies in folders that the command closed to itself, with their modes', async () => {
    const script = `mkdir -p shut/inner empty; echo in > shut/inner/file; echo new > src/new; echo last > last
      chmod 0 shut/inner shut empty; chmod 300 src; chmod 0 .`
    const run = await here(account, script, ['--json'])
    expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' })
    const { changes } = parseAs<{ changes: { changes: { change: string; path: string; after: { mode: number } }[]; skipped: unknown[] } }>(run.stdout)
    expect(changes.changes.map(({ change, path, after }) => `${change} ${path} ${after.mode.toString(8)}`)).toEqual([
      'A empty 0',
      'A last 644',
      'A shut 0',
      'A shut/inner 0',
      'A shut/inner/file 644',
      'M src 300',
      'A src/new 644',
    ])
    expect(changes.skipped).toEqual([])
    expect(await glovebox(account, ['apply', '-q'])).toMatchObject({ code: 0, stderr: '', stdout: '' })
    const modes = ['empty', 'shut', 'src'].map((name) => (statSync(join(project, name)).mode & 0o777).toString(8))
    expect(modes).toEqual(['0', '0', '300'])
    shell('chmod 700 empty shut src; chmod 700 shut/inner', project, account)
    expect(['last', 'shut/inner/file', 'src/new'].map((name) => readFileSync(join(project, name), 'utf8'))).toEqual(['last\n', 'in\n', 'new\n'])
  })

  test('refuses what changed underneath, takes single files, and follows no link that was planted meanwhile', async () => {
    await here(account, 'echo mine > README.md; echo new > src/new; echo two > two; rm doomed.txt')
    writeFileSync(join(project, 'README.md'), 'theirs\n')
    const before = photograph(project)
    const refused = await glovebox(account, ['apply'])
    expect([refused.code, refused.stderr]).toEqual([125, expect.stringContaining('nothing was applied: changed meanwhile: README.md\n')])
    expect(photograph(project)).toEqual(before)
    expect((await glovebox(account, ['apply', '--', 'two'])).stderr).toBe(`glovebox: applied 1 change to ${project}, 3 still pending\n`)
    mkdirSync(join(top, 'outside'))
    renameSync(join(project, 'src'), join(project, 'elsewhere'))
    symlinkSync(join(top, 'outside'), join(project, 'src'))
    expect((await glovebox(account, ['apply', '--', 'src/new'])).stderr).toContain('src/new (its folder is gone, or a link)')
    expect(readdirSync(join(top, 'outside'))).toEqual([])
    expect((await glovebox(account, ['apply', '--', join(top, 'outside')])).stderr).toContain(`is not in ${project}`)
    expect(existsSync(join(project, 'doomed.txt'))).toBe(true)
  })

  test('takes names of any bytes over, shows them escaped, and takes them as they are typed', async () => {
    const odd = (name: string): Buffer => Buffer.from(name, 'latin1')
    const at = (name: string): Buffer => Buffer.concat([Buffer.from(`${project}/`), odd(name)])
    writeFileSync(at('gone\u00e9'), 'gone\n')
    chownSync(at('gone\u00e9'), account.uid, account.uid)
    const run = await here(
      account,
      String.raw`rm "$(printf 'gone\351')"; echo new > "$(printf 'new\351')"; echo two > "$(printf 'two\033\377')"; ln -s "$(printf 't\376')" link`,
      ['--json'],
    )
    const { changes } = parseAs<{ changes: { id: string; changes: { change: string; path: string; pathBase64?: string }[] } }>(run.stdout)
    expect(changes.changes.map(({ change, path, pathBase64 }) => [change, path, pathBase64 && Buffer.from(pathBase64, 'base64').toString('latin1')])).toEqual([
      ['D', 'gone\ufffd', 'gone\u00e9'],
      ['A', 'link', undefined],
      ['A', 'new\ufffd', 'new\u00e9'],
      ['A', 'two\u001b\ufffd', 'two\u001b\u00ff'],
    ])
    const { stdout } = await glovebox(account, ['changes', changes.id])
    expect(stdout).toContain('D  gone\\xe9  5 bytes\nA  link  → t\\xfe\nA  new\\xe9  4 bytes\nA  two\\x1b\\xff  4 bytes\n')
    expect(stdout).toContain('+++ b/two\\x1b\\xff\n@@ -0,0 +1 @@\n+two\n')
    expect(await glovebox(account, ['apply', '-q', '--', odd('new\u00e8')])).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('no change of new\\xe8 is pending'),
    })
    expect((await glovebox(account, ['apply', '--', odd('new\u00e9')])).stderr).toContain('applied 1 change')
    expect([readFileSync(at('new\u00e9'), 'utf8'), existsSync(at('gone\u00e9'))]).toEqual(['new\n', true])
    await glovebox(account, ['apply'])
    expect([existsSync(at('gone\u00e9')), readFileSync(at('two\u001b\u00ff'), 'utf8'), readlinkSync(at('link'), 'latin1')]).toEqual([false, 'two\n', 't\u00fe'])
  })

  test('holds what is written to the disk of the cell, and keeps what there was room for', async () => {
    const run = await here(account, 'head -c 100000 /dev/zero > fits; head -c 9000000 /dev/zero > large 2>/dev/null || rm large; echo end > end', [
      '--disk',
      '2m',
    ])
    expect(run.code).toBe(0)
    await glovebox(account, ['apply'])
    expect([lstatSync(join(project, 'fits')).size, existsSync(join(project, 'large')), readFileSync(join(project, 'end'), 'utf8')]).toEqual([
      100_000,
      false,
      'end\n',
    ])
  })

  test('costs what was changed: of 20,000 files none is read that was not', async () => {
    shell('mkdir many; cd many; seq 20000 | xargs touch', project, account)
    const times = [usedMs()]
    for (const script of ['echo 1 > one', 'echo x > many/77; rm many/78']) {
      const run = await here(account, script)
      expect(run.stderr).toMatch(/[12] changes? of/)
      times.push(usedMs())
    }
    const [begun = 0, small = 0, large = 0] = times
    expect(large - small).toBeLessThan((small - begun) * 2 + 1500)
  })
})

describe('run --here', () => {
  skipGroup(!isBwrapReady && 'bwrap is not ready here: ./glovebox doctor')
  test.each([
    ['/', 'it is the whole host'],
    ['/proc', 'kernel'],
  ])('refuses %s with the reason, and says where to go', async (folder, why) => {
    mkdirSync(join(top, 'changes'), { mode: 0o700 })
    const { code, stderr } = await glovebox(self, ['run', '-q', '--driver', 'bwrap', '--here', '--', 'true'], folder)
    expect([code, stderr]).toEqual([
      125,
      expect.stringMatching(new RegExp(`^glovebox: --here: ${folder} cannot be mounted: .*${why}.*\nhint: cd PROJECT && glovebox run --here`)),
    ])
  })

  test('refuses a folder with keys, and a second folder for /workspace', async () => {
    mkdirSync(join(project, '.ssh'), { recursive: true })
    const keys = await glovebox(self, ['run', '-q', '--driver', 'bwrap', '--here', '--', 'true'])
    expect(keys.stderr).toMatch(/^glovebox: --here: .*project cannot be mounted: it holds .ssh/)
    const two = await glovebox(self, ['run', '-q', '--here', '--mount', '/usr:/workspace', '--', 'true'])
    expect(two.stderr).toMatch(/^glovebox: --here: takes \/workspace, which --mount takes too/)
  })
})
