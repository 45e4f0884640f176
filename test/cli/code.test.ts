import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { testUnless } from '../unless.js'
import { cli, type CliOptions, type CliResult, collect, exitCodeOf, fake, parseAs, printed, startCli } from './cli.js'
import { enforcesMemory } from './machine.js'

const patience = 120_000
const folder = mkdtempSync(join(tmpdir(), 'gbx-code-'))
afterAll(() => rmSync(folder, { recursive: true }))

const code = (args: readonly string[], options?: CliOptions): Promise<CliResult> => cli(['code', '--quiet', ...fake, ...args], options)

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

const matplotlib = await cli(['code', '--quiet', '-c', 'import matplotlib'])
const bash = await code(['-l', 'bash', '-c', 'true'])
const noBash = bash.code === 0 ? false : `bash: ${bash.stderr.trim()}`

describe('glovebox code', { timeout: patience }, () => {
  test('prints the value of the last expression, and what is printed', async () => {
    expect(await code(['-c', 'print("out"); import sys; print("err", file=sys.stderr); 6 * 7'])).toMatchObject({
      code: 0,
      stdout: 'out\n42\n',
      stderr: 'err\n',
    })
  })

  test('says how many results it did not get', async () => {
    const { code: exit, stdout, stderr } = await code(['-c', 'for n in range(10_003): display(n)'])
    expect([exit, stdout.split('\n').length, stderr]).toEqual([0, 10_001, 'glovebox: 3 more results were dropped; an execution has at most 10,000\n'])
  })

  test('runs several in order with one memory, until one fails', async () => {
    const second = file('second.py', 'print(x + 1)\n1 / 0\n')
    const { code: exit, stdout, stderr } = await code(['-c', 'x = 41', second, file('third.py', 'print("never")')])
    expect([exit, stdout]).toEqual([1, '42\n'])
    expect(stderr).toMatch(/^Traceback[\s\S]*line 2[\s\S]*1 \/ 0\n +~*\^~*\nZeroDivisionError: division by zero\n$/)
  })

  test.each([
    ['a.py', '[i for i in range(3)]', '[0, 1, 2]\n'],
    ['a.js', '[1, 2].map((x) => x * 2)', '[ 2, 4 ]\n'],
    ['a.mjs', 'const { sep } = await import("node:path"); sep', "'/'\n"],
    ['a.ts', 'const n: number = 41; n + 1', '42\n'],
  ])('knows the language of %s', async (name, source, expected) => {
    expect(await code([file(name, source)])).toMatchObject({ code: 0, stdout: expected, stderr: '' })
  })

  testUnless(noBash, { timeout: patience })('runs bash, and hands on its exit code without a traceback', async () => {
    expect(await code([file('a.sh', 'echo "from $0" >/dev/null; printf hi')])).toMatchObject({ code: 0, stdout: 'hi' })
    expect(await code(['-l', 'sh', '-c', 'echo on; (exit 3)'])).toMatchObject({ code: 3, stdout: 'on\n', stderr: '' })
  })

  test.each([
    [['x.rb'], /x\.rb: nobody knows the extension '\.rb'.*\.py \(python\)/],
    [['-l', 'cobol', '-c', '1'], /there is no 'cobol'; expected one of python, javascript, typescript, bash/],
    [['nowhere.py'], /nowhere\.py cannot be read: there is no such file/],
    [['/'], /has no extension/],
    [['-l', 'python', '/'], /is a folder/],
    [['-', '-'], /- can be given once/],
    [['--memory', 'lots', '-c', '1'], /--memory/],
  ])('refuses %j before anything starts', async (args, message) => {
    const { code: exit, stdout, stderr } = await code(args)
    expect([exit, stdout]).toEqual([125, ''])
    expect(stderr).toMatch(message)
  })

  test('takes code from stdin, by - or without being told', async () => {
    expect(await code([], { input: 'print(3)\n' })).toMatchObject({ code: 0, stdout: '3\n' })
    expect(await code(['-l', 'js', '-'], { input: '1 + 1' })).toMatchObject({ code: 0, stdout: '2\n' })
    expect(await code([], { input: Buffer.from([0x70, 0xff, 0xfe]) })).toMatchObject({ code: 125, stderr: expect.stringContaining('no UTF-8') })
    expect(await code([], { input: Buffer.alloc((16 << 20) + 1, 0x23) })).toMatchObject({ code: 125, stderr: expect.stringContaining('16 MiB') })
  })

  test('hands piped lines to input(), and ends it with them', async () => {
    const { code: exit, stdout, stderr } = await code(['-c', 'a = input("name? "); b = input(); print([a, b]); input()'], { input: 'Ada\r\nLovelace' })
    expect([exit, stdout]).toEqual([1, "name? ['Ada', 'Lovelace']\n"])
    expect(stderr).toMatch(/EOFError/)
  })

  test.each([
    ['exit(7)', 7],
    ['exit(10 ** 300)', 255],
    ['import sys; sys.exit(0)', 0],
    ['raise SystemExit(256 + 3)', 3],
    ['raise ValueError("no")', 1],
    ['import os; os._exit(4)', 4],
  ])('exits with the code of %s', async (source, expected) => {
    expect((await code(['-c', source])).code).toBe(expected)
  })

  test('is stopped by --timeout with 124', async () => {
    const late = await code(['--timeout', '1s', '-c', 'while True: pass'])
    expect([late.code, late.stderr]).toEqual([124, expect.stringMatching(/KeyboardInterrupt[\s\S]*glovebox: -c was stopped after .* \(--timeout\)\n$/)])
  })

  testUnless(enforcesMemory ? false : 'nothing enforces a limit of memory here', { timeout: patience })(
    'is killed for memory with 137 and one line',
    async () => {
      const greedy = await cli(['code', '-q', '-m', '64m', '-c', 'x = bytearray(300 << 20)'])
      expect([greedy.code, greedy.stderr]).toEqual([137, expect.stringMatching(/^glovebox: -c was killed: it needed more memory than 64 MiB .*\n$/)])
    },
  )

  test('is interrupted by Ctrl-C with 130, and cleans up after itself', async () => {
    const child = startCli(['code', '--quiet', ...fake, '-c', 'print("on", flush=True)\nwhile True: pass'])
    const result = collect(child)
    await printed(child, 'on')
    child.kill('SIGINT')
    expect(await result).toMatchObject({ code: 130, stderr: expect.stringContaining('KeyboardInterrupt') })
    expect(await exitCodeOf(child)).toBe(130)
  })

  test('prints JSON, one object a line, for those who ask', async () => {
    const { stdout, code: exit } = await code(['--json', '-c', 'print("ä", end=""); 1', '-c', '1 / 0'])
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => parseAs<Record<string, unknown>>(line))
    expect(exit).toBe(1)
    expect(lines).toMatchObject([
      { type: 'stdout', text: 'ä' },
      { type: 'result', result: { isMain: true, data: { 'text/plain': '1' }, cut: [] } },
      { type: 'end', source: '-c', status: 'ok', number: 1 },
      { type: 'end', status: 'error', number: 2, error: { name: 'ZeroDivisionError', line: 1 } },
      { type: 'done', code: 1, driver: 'fake' },
    ])
    const refused = await code(['--json', '-l', 'cobol', '-c', '1'])
    expect(parseAs<unknown>(refused.stdout)).toMatchObject({ error: { code: 'invalid' } })
  })

  test('takes files in and out, and begins where it is told', async () => {
    const target = join(folder, 'out.txt')
    const flags = ['--upload', `${file('in.txt', 'abc')}:/workspace/in.txt`, '--download', `/workspace/out.txt:${target}`, '--workdir', '/tmp']
    const result = await cli([
      'code',
      '-q',
      ...flags,
      '-c',
      'import os\nopen("/workspace/out.txt", "w").write(open("/workspace/in.txt").read().upper())\nos.getcwd()',
    ])
    expect(result).toMatchObject({ code: 0, stdout: "'/tmp'\n" })
    expect(readFileSync(target, 'utf8')).toBe('ABC')
  })

  test('runs where nothing else is reached: no files of the host, no network', async () => {
    const source = 'import os, socket\nprint(os.getuid(), os.path.exists("/root/.ssh"), os.listdir("/workspace"))\nsocket.create_connection(("1.1.1.1", 53), 2)'
    const { code: exit, stdout, stderr } = await cli(['code', '-q', '-c', source])
    expect([exit, stdout]).toEqual([1, '1000 False []\n'])
    expect(stderr).toMatch(/OSError: .*unreachable/i)
  })
})

describe('glovebox code --out', { timeout: patience }, () => {
  let out: string
  beforeEach(() => {
    out = mkdtempSync(join(folder, 'out-'))
  })
  const run = (source: string, flags: readonly string[] = []): Promise<CliResult> => cli(['code', '--out', out, ...flags, '-c', source])

  test('writes files under names that harm nobody, and none twice', async () => {
    const source = String.raw`
import os
os.makedirs('/workspace/plots')
for name in ['a.txt', 'plots/a.txt', '-rf', '.bashrc', 'x\x1b[31m\u202e.txt', 'con', 'b' * 200 + '.csv']:
    open('/workspace/' + name, 'w').write(name)
os.symlink('/etc/passwd', '/workspace/link')`
    const { code: exit, stderr } = await run(source)
    expect(exit).toBe(0)
    expect(readdirSync(out).sort()).toEqual(['_bashrc', '_con', '_rf', 'a.txt', `${'b'.repeat(116)}.csv`, 'plots_a.txt', 'x_[31m_.txt'])
    expect(stderr.split('\n').filter((line) => line.includes('wrote ')).length).toBe(7)
    await run("open('/workspace/a.txt', 'w').write('second')")
    expect([readFileSync(join(out, 'a.txt'), 'utf8'), readFileSync(join(out, 'a-2.txt'), 'utf8')]).toEqual(['a.txt', 'second'])
    await run("open('/workspace/a.txt', 'w').write('third')", ['--force'])
    expect(readFileSync(join(out, 'a.txt'), 'utf8')).toBe('third')
  })

  test('follows no link that is in its way', async () => {
    const victim = file('victim.txt', 'safe')
    symlinkSync(victim, join(out, 'a.txt'))
    await run("open('/workspace/a.txt', 'w').write('evil')")
    await run("open('/workspace/a.txt', 'w').write('evil')", ['--force'])
    expect(readFileSync(victim, 'utf8')).toBe('safe')
    expect(statSync(join(out, 'a.txt')).size).toBe(4)
  })

  test('refuses what is no folder before anything runs', async () => {
    const { code: exit, stderr } = await cli(['code', '--out', file('plain', ''), '-c', '1'])
    expect([exit, stderr]).toEqual([125, expect.stringMatching(/--out: .*plain is there already and is no folder/)])
  })

  test('writes every form of a result', async () => {
    const source = `
class Both:
    def _repr_svg_(self): return '<svg xmlns="http://www.w3.org/2000/svg"/>'
    def _repr_html_(self): return '<b>x</b>'
Both()`
    const { code: exit, stderr } = await run(source)
    expect([exit, readdirSync(out).sort()]).toEqual([0, ['result-1.html', 'result-1.svg']])
    expect(stderr).toMatch(/wrote .*result-1\.svg/)
    expect(readFileSync(join(out, 'result-1.html'), 'utf8')).toBe('<b>x</b>')
  })

  testUnless(matplotlib.code === 0 ? false : 'there is no matplotlib here', { timeout: patience })('writes a figure as a picture and as its data', async () => {
    const { code: exit, stdout } = await run('import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 4])\nplt.title("t")\nNone')
    expect([exit, stdout]).toEqual([0, ''])
    expect(readdirSync(out).sort()).toEqual(['result-1.chart.json', 'result-1.png'])
    expect(readFileSync(join(out, 'result-1.png')).subarray(1, 4).toString()).toBe('PNG')
    expect(parseAs<unknown>(readFileSync(join(out, 'result-1.chart.json'), 'utf8'))).toMatchObject({ type: 'line', title: 't' })
    expect(existsSync(join(out, 'result-1.html'))).toBe(false)
  })
})
