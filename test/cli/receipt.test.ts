import { execFileSync } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { Receipt } from '../../src/contract/receipt.js'
import { buildReceipt, formatReceipt, keyIdOf, signReceipt, verifyReceipt } from '../../src/receipt/index.js'
import { facts, keyFrom, privateKey, publicKey } from '../receipt/facts.js'
import { type CliOptions, cli, collect, fake, parseAs, printed, startCli } from './cli.js'

const all = mkdtempSync(join(tmpdir(), 'gbx-receipts-'))
afterAll(() => rmSync(all, { recursive: true, force: true }))

const keyId = keyIdOf(publicKey)
const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
const receipt = signReceipt(buildReceipt(facts), privateKey)

let count = 0
let folder: string
let keys: string
let file: string
beforeEach(() => {
  count += 1
  folder = join(all, String(count))
  keys = join(folder, 'keys')
  file = join(folder, 'receipt.json')
  mkdirSync(keys, { recursive: true, mode: 0o700 })
  writeFileSync(file, formatReceipt(receipt))
})

/** From now on the machine's own key is the one that signed. */
function ownKey(): void {
  writeFileSync(join(keys, 'receipt-key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
}

function call(args: readonly string[], options: CliOptions = {}) {
  return cli(['receipt', ...args], { ...options, env: { GLOVEBOX_KEY_DIR: keys, ...options.env } })
}

async function outcomeOf(args: readonly string[]) {
  const { code, stdout, stderr } = await call(args)
  return { code, stdout: unwrapped(stdout), stderr: stderr.replaceAll(folder, 'DIR') }
}

/** Where a line breaks depends on how long the name of our folder is; pages do not name it. */
function unwrapped(text: string): string {
  return text.includes(folder) ? text.replaceAll(/\n {2}/g, ' ').replaceAll(folder, 'DIR') : text
}

describe('receipt show', () => {
  test('prints the page of its golden file, in 80 columns', async () => {
    ownKey()
    const { code, stdout, stderr } = await outcomeOf(['show', file])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
    await expect(stdout).toMatchFileSnapshot('golden/receipt-show.txt')
  })

  test('marks what nothing enforces, and shows the runs that were cut short', async () => {
    const [run] = facts.runs
    if (!run) throw new Error('there is one')
    const { usage, outcome: _, ...running } = run
    const unenforced = [{ limit: 'cpus', why: 'no cgroup can be written by this user' }] as const
    const runs = [
      { ...run, outcome: { kind: 'timed-out', by: 'cpu', limitMs: 2000 } as const },
      { ...run, number: 2, outcome: { kind: 'killed', reason: '\u001b[2Jnothing\nglovebox: all is well' } as const },
      { ...running, number: 3 },
    ]
    const probe = { ...facts.probe, driver: 'fake', tier: 'none', isolates: false } as const
    const bare = buildReceipt({ ...facts, info: { ...facts.info, unenforced }, probe, runs, usage: { ...facts.usage, runs: 9, processesPeak: null } })
    expect(usage).toBeDefined()
    writeFileSync(file, formatReceipt(signReceipt(bare, privateKey)))
    const { code, stdout } = await outcomeOf(['show', file])
    expect(code).toBe(0)
    expect(stdout).not.toContain('\u001b')
    await expect(stdout).toMatchFileSnapshot('golden/receipt-show-bare.txt')
  })

  test('tells of a run in a liner that is over when its cell was read', async () => {
    const own = buildReceipt({ ...facts, made: { fresh: 'liner', pooled: true }, cellReadAt: '2026-01-02T03:04:05.006Z' })
    writeFileSync(file, formatReceipt(signReceipt(own, privateKey)))
    const { stdout } = await outcomeOf(['show', file])
    expect(stdout.split('\n').filter((line) => /^ {2}(fresh|looked at|\s+program was)/.test(line))).toEqual([
      '  fresh      a liner of its own, in a cell, made ahead',
      '  looked at  the program at its gate; the cell as a whole at',
    ])
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('the cell as a whole at 2026-01-02T03:04:05.006Z, for the program was over when this was issued')
  })

  test('--json prints the receipt, who signed it and what it does not prove', async () => {
    ownKey()
    const { code, stdout } = await call(['show', '--json', file])
    const shown = parseAs<{ verification: object; unproven: string[]; receipt: object }>(stdout)
    expect({ code, verification: shown.verification, receipt: shown.receipt }).toEqual({
      code: 0,
      verification: { valid: true, keyId, trusted: true, by: "this machine's key" },
      receipt,
    })
    expect(shown.unproven).toContain('tier is only told, by driver bwrap')
  })

  test('shows nothing of a receipt that was changed but that it was', async () => {
    writeFileSync(file, formatReceipt({ ...receipt, glovebox: '9.9.9' }))
    expect(await outcomeOf(['show', file])).toEqual({
      code: 1,
      stdout: '✗ DIR/receipt.json is not valid: the signature does not fit: something was changed\n',
      stderr: '',
    })
  })

  test.each([
    ['there is none', undefined, 'DIR/receipt.json: there is no such file', 'ls -l DIR/receipt.json'],
    ['it is no JSON', 'hello', 'DIR/receipt.json: it is not JSON', 'glovebox receipt --help'],
  ])('says when %s', async (_, text, message, hint) => {
    if (text === undefined) rmSync(file)
    else writeFileSync(file, text)
    expect(await outcomeOf(['show', file])).toEqual({ code: 125, stdout: '', stderr: `glovebox: ${message}\nhint: ${hint}\n` })
  })
})

describe('receipt verify', () => {
  test('is 0 for what this machine signed', async () => {
    ownKey()
    expect(await outcomeOf(['verify', file])).toEqual({
      code: 0,
      stdout: `✓ DIR/receipt.json is as it was signed, by this machine's key (${keyId})\n`,
      stderr: '',
    })
    expect(parseAs((await call(['verify', '--json', file])).stdout)).toEqual({ valid: true, trusted: true, keyId, by: "this machine's key" })
  })

  test('is 0 for what the given key signed, whatever the own one is', async () => {
    const key = join(folder, 'signer.pem')
    writeFileSync(key, pem)
    expect(await call(['verify', '--key', key, file])).toMatchObject({ code: 0, stderr: '' })
    expect(parseAs((await call(['verify', '--json', '--key', key, file])).stdout)).toEqual({ valid: true, trusted: true, keyId, by: 'the key given' })
    expect(existsSync(join(keys, 'receipt-key.pem'))).toBe(false)
  })

  test('is 1 for an intact receipt by somebody unknown, and says what that means', async () => {
    const { code, stdout, stderr } = await outcomeOf(['verify', file])
    expect({ code, stderr, text: stdout }).toEqual({
      code: 1,
      stderr: '',
      text: `✗ DIR/receipt.json is intact, but signed by a key this machine does not know (${keyId}): that proves nothing about who made it\nhint: glovebox receipt verify --key SIGNER.pem DIR/receipt.json\n`,
    })
    expect(parseAs((await call(['verify', '--json', file])).stdout)).toEqual({ valid: true, trusted: false, keyId })
  })

  test('is 1 for a receipt that another than the given key signed', async () => {
    ownKey()
    const key = join(folder, 'other.pem')
    const other = createPublicKey(keyFrom(8))
    writeFileSync(key, other.export({ type: 'spki', format: 'pem' }))
    expect(await call(['verify', '--json', '--key', key, file])).toMatchObject({
      code: 1,
      stdout: `${JSON.stringify({ trusted: false, valid: false, why: `it is signed by key ${keyId}, not by ${keyIdOf(other)}` })}\n`,
    })
  })

  test.each([
    ['a changed value', (text: string) => text.replace('"tier": "process"', '"tier": "vm"')],
    ['a changed space', (text: string) => text.replace('\n  "host"', '\n\t "host"')],
    ['a key twice', (text: string) => text.replace('"template"', '"glovebox": "0.1.0",\n  "template"')],
    ['half of it', (text: string) => text.slice(0, 500)],
    ['nothing', () => ''],
  ])('is 1 for %s', async (_, change) => {
    ownKey()
    const text = formatReceipt(receipt)
    expect(change(text)).not.toBe(text)
    writeFileSync(file, change(text))
    const { code, stdout, stderr } = await outcomeOf(['verify', file])
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    expect(stdout).toMatch(/^✗ DIR\/receipt\.json is not valid: /)
  })

  test.each([
    [
      'no key in the key',
      ['--key', 'receipt.json', 'receipt.json'],
      'glovebox: --key: DIR/receipt.json holds no Ed25519 public key\nhint: glovebox receipt key > key.pem\n',
    ],
    ['no such file', ['nowhere.json'], 'glovebox: DIR/nowhere.json: there is no such file\nhint: ls -l DIR/nowhere.json\n'],
    ['a folder', ['.'], 'glovebox: DIR/.: cannot be read (EISDIR)\nhint: ls -l DIR/.\n'],
    ['no file', [], "glovebox: missing required argument 'FILE'\nhint: glovebox receipt verify --help\n"],
  ])('is 125 where there is %s', async (_, args, stderr) => {
    const paths = args.map((each) => (each.startsWith('--') ? each : `${folder}/${each}`))
    expect(await outcomeOf(['verify', ...paths])).toEqual({ code: 125, stdout: '', stderr })
  })
})

describe('receipt key', () => {
  test('prints the public key that is kept, and makes it when there is none', async () => {
    const first = await call(['key'])
    expect({ code: first.code, stderr: first.stderr, stdout: first.stdout }).toEqual({
      code: 0,
      stderr: '',
      stdout: readFileSync(join(keys, 'receipt-key.pub.pem'), 'utf8'),
    })
    expect(statSync(join(keys, 'receipt-key.pem')).mode & 0o777).toBe(0o600)
    expect((await call(['key'])).stdout).toBe(first.stdout)
  })

  test('--json tells its id too', async () => {
    ownKey()
    expect(parseAs((await call(['key', '--json'])).stdout)).toEqual({ keyId, publicKey: pem })
  })

  test('is refused when others can read it, with the way on', async () => {
    ownKey()
    chmodSync(join(keys, 'receipt-key.pem'), 0o644)
    expect(await outcomeOf(['key'])).toEqual({
      code: 125,
      stdout: '',
      stderr: 'glovebox: the key DIR/keys/receipt-key.pem can be read by others (mode 644)\nhint: chmod 600 DIR/keys/receipt-key.pem\n',
    })
  })
})

describe('receipt', () => {
  test('alone shows what there is, as its help does', async () => {
    const { stdout } = await cli(['receipt', '--help'])
    expect(await cli(['receipt'])).toMatchObject({ code: 0, stdout, stderr: '' })
    expect(await cli(['help', 'receipt'])).toMatchObject({ code: 0, stdout, stderr: '' })
    expect(await cli(['help', 'receipt', 'verify'])).toMatchObject({ code: 0, stdout: (await cli(['receipt', 'verify', '--help'])).stdout })
  })

  test.each([
    ['receipt-help', ['receipt', '--help']],
    ['receipt-show-help', ['receipt', 'show', '--help']],
    ['receipt-verify-help', ['receipt', 'verify', '--help']],
    ['receipt-key-help', ['receipt', 'key', '--help']],
  ])('%s is what its golden file says, in 80 columns', async (name, args) => {
    const { code, stdout } = await cli(args)
    expect(code).toBe(0)
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
    await expect(stdout).toMatchFileSnapshot(`golden/${name}.txt`)
  })

  test.each([
    [['receipt', 'shw'], "glovebox: unknown command 'shw' (did you mean show?)\nhint: glovebox receipt --help\n"],
    [['help', 'receipt', 'shw'], "glovebox: unknown command 'shw' (did you mean show?)\nhint: glovebox receipt --help\n"],
    [['receipt', 'verify', '--kye', 'x'], "glovebox: unknown option '--kye' (did you mean --key?)\nhint: glovebox receipt verify --help\n"],
  ])('%j is 125 with a hint that fits', async (args, stderr) => {
    expect(await cli(args)).toMatchObject({ code: 125, stdout: '', stderr })
  })

  test('every flag of it is in the documentation by its long name', async () => {
    const documentation = readFileSync(new URL('../../docs/receipts.md', import.meta.url), 'utf8')
    for (const flag of ['--receipt', '--key', '--json', 'receipt show', 'receipt verify', 'receipt key', 'GLOVEBOX_KEY_DIR'])
      expect(documentation).toContain(flag)
  })
})

describe('a file that is read', () => {
  test.each(['show', 'verify'])('by %s is never waited for when it is a pipe with a name, and a device or a folder is refused', async (command) => {
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    expect(await outcomeOf([command, pipe])).toEqual({
      code: 125,
      stdout: '',
      stderr: 'glovebox: DIR/pipe: is a pipe with a name, not a file\nhint: ls -l DIR/pipe\n',
    })
    expect(await outcomeOf([command, folder])).toMatchObject({ code: 125, stderr: expect.stringContaining('DIR: cannot be read (EISDIR)') as string })
    expect(await outcomeOf([command, '/dev/zero'])).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('/dev/zero: is larger than any receipt') as string,
    })
  })
})

describe('run --receipt', () => {
  const run = (flags: readonly string[], command: readonly string[]) =>
    cli(['run', '--quiet', ...fake, ...flags, '--', ...command], { env: { GLOVEBOX_KEY_DIR: keys } })

  function written(path = file): Receipt {
    const read = parseAs<Receipt>(readFileSync(path, 'utf8'))
    const own = createPublicKey(readFileSync(join(keys, 'receipt-key.pub.pem'), 'utf8'))
    expect(verifyReceipt(read, { publicKey: own })).toMatchObject({ valid: true, trusted: true })
    return read
  }

  test('writes it beside what the program prints, and exits as the program did', async () => {
    rmSync(file)
    expect(await run(['--receipt', file], ['sh', '-c', 'echo out; exit 3'])).toMatchObject({ code: 3, stdout: 'out\n', stderr: '' })
    expect(written()).toMatchObject({ driver: { name: 'fake', tier: 'none' }, runs: [{ number: 1, outcome: { kind: 'exited', code: 3 } }] })
    expect(statSync(file).mode & 0o777).toBe(0o644 & ~process.umask())
    expect(readdirSync(folder).sort()).toEqual(['keys', 'receipt.json'])
    expect(await call(['verify', file])).toMatchObject({ code: 0 })
  })

  test('replaces the file that was there, by way of a link too', async () => {
    const link = join(folder, 'link.json')
    symlinkSync(file, link)
    expect(await run(['--receipt', link], ['true'])).toMatchObject({ code: 0 })
    expect(written(file).runs).toHaveLength(1)
    expect(readdirSync(folder).sort()).toEqual(['keys', 'link.json', 'receipt.json'])
  })

  test.each([
    ['ran too long', ['--timeout', '200ms'], ['sleep', '20'], 124, { kind: 'timed-out', by: 'wall', limitMs: 200 }],
    ['printed too much', ['--output', '10'], ['sh', '-c', 'yes'], 137, { kind: 'output-limit', limitBytes: 10 }],
    ['was ended by a signal', [], ['sh', '-c', 'kill -USR1 $$'], 138, { kind: 'signaled', signal: 'SIGUSR1' }],
  ])('is written when the program %s', async (_, flags, command, code, outcome) => {
    expect(await run(['--receipt', file, ...flags], command)).toMatchObject({ code })
    expect(written().runs.map((each) => each.outcome)).toEqual([outcome])
  })

  test('is written when there is no such program', async () => {
    expect(await run(['--receipt', file], ['no-such-program'])).toMatchObject({ code: 127 })
    expect(written().runs.map((each) => each.outcome)).toEqual([expect.objectContaining({ kind: 'not-started', code: 127 }) as unknown])
  })

  test('is written with --json too', async () => {
    const { code, stdout } = await run(['--receipt', file, '--json'], ['echo', 'hi'])
    expect({ code, id: parseAs<{ id: string }>(stdout).id }).toEqual({ code: 0, id: written().sandbox.id })
  })

  test('leaves a draft when we are killed, which goes when the next receipt is written beside it', async () => {
    const child = startCli(['run', '--quiet', ...fake, '--receipt', file, '--', 'sh', '-c', 'echo up; sleep 30'], { GLOVEBOX_KEY_DIR: keys })
    const result = collect(child)
    await printed(child, 'up')
    child.kill('SIGKILL')
    await result
    expect(readdirSync(folder).sort()).toEqual([expect.stringMatching(/^\.glovebox\..*\.draft$/) as string, 'keys', 'receipt.json'])
    expect(await run(['--receipt', join(folder, 'other.json')], ['true'])).toMatchObject({ code: 0 })
    expect(readdirSync(folder).sort()).toEqual(['keys', 'other.json', 'receipt.json'])
  })

  test.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('is written when we are told to stop by %s', async (signal, code) => {
    const child = startCli(['run', '--quiet', ...fake, '--receipt', file, '--', 'sh', '-c', 'echo up; sleep 30'], { GLOVEBOX_KEY_DIR: keys })
    const result = collect(child)
    await printed(child, 'up')
    child.kill(signal)
    expect(await result).toMatchObject({ code, stdout: 'up\n', stderr: '' })
    expect(written().runs.map((each) => each.outcome)).toEqual([{ kind: 'killed', reason: 'aborted by its owner' }])
    expect(readdirSync(folder).sort()).toEqual(['keys', 'receipt.json'])
  })

  test('is written when Ctrl-C is pressed', async () => {
    const child = startCli(['run', '--quiet', ...fake, '--receipt', file, '--', 'sh', '-c', 'echo up; exec sleep 30'], { GLOVEBOX_KEY_DIR: keys })
    const result = collect(child)
    await printed(child, 'up')
    child.kill('SIGINT')
    expect(await result).toMatchObject({ code: 130 })
    expect(written().runs.map((each) => each.outcome)).toEqual([{ kind: 'signaled', signal: 'SIGINT' }])
  })

  test.each([
    ['-', "--receipt: stdout is the program's; a receipt needs a file of its own"],
    ['', '--receipt: must not be empty'],
    ['DIR/keys', '--receipt: DIR/keys is there already and is no file'],
    ['/dev/null', '--receipt: /dev/null is there already and is no file'],
    ['DIR/nowhere/receipt.json', '--receipt: there is no folder DIR/nowhere'],
  ])('%j is refused before anything starts', async (name, message) => {
    const mark = join(folder, 'ran')
    const { code, stdout, stderr } = await run(['--receipt', name.replace('DIR', folder)], ['touch', mark])
    expect({ code, stdout, stderr: stderr.replaceAll(folder, 'DIR') }).toEqual({
      code: 125,
      stdout: '',
      stderr: `glovebox: ${message}\nhint: glovebox run --receipt receipt.json -- …\n`,
    })
    expect(existsSync(mark)).toBe(false)
    expect(statSync('/dev/null').isCharacterDevice()).toBe(true)
  })

  test('a key that cannot be had is told before anything starts, and the file that was there stays', async () => {
    ownKey()
    chmodSync(join(keys, 'receipt-key.pem'), 0o640)
    const mark = join(folder, 'ran')
    expect(await run(['--receipt', file], ['touch', mark])).toMatchObject({ code: 125, stderr: expect.stringContaining('can be read by others') as unknown })
    expect(existsSync(mark)).toBe(false)
    expect(readFileSync(file, 'utf8')).toBe(formatReceipt(receipt))
    expect(readdirSync(folder).sort()).toEqual(['keys', 'receipt.json'])
  })

  test('leaves the file that was there when no sandbox came about', async () => {
    const refused = await cli(['run', '--receipt', file, '--driver', 'steel', '--', 'true'], { env: { GLOVEBOX_KEY_DIR: keys } })
    expect(refused).toMatchObject({ code: 125 })
    expect(readFileSync(file, 'utf8')).toBe(formatReceipt(receipt))
    expect(readdirSync(folder).sort()).toEqual(['keys', 'receipt.json'])
  })
})
