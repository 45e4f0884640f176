import { spawnSync } from 'node:child_process'
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { nativeProgram } from '../../../src/sys/native.js'
import { skipGroup } from '../../unless.js'

const isRoot = process.getuid?.() === 0
const launcher = nativeProgram('launcher')
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-launcher-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function run(argv: readonly string[]): { status: number | null; said: string } {
  const [file = '', ...rest] = argv
  const { status, stdout, stderr } = spawnSync(file, rest, { encoding: 'utf8', cwd: folder })
  return { status, said: `${stdout}${stderr}` }
}

/** In a mount namespace of its own, so that what is mounted for a test never reaches the host. */
function inOwnNamespace(script: string) {
  return run(['unshare', '--mount', '--propagation', 'private', '/bin/sh', '-c', script])
}

describe('what the launcher is told wrongly', () => {
  test.each([
    ['--mount', ['--mount', '3', 'm', 'ro', '-', '-'], 'move descriptor: Bad file descriptor'],
    ['a mode', ['--mount', '3', 'm', 'wo', '-', '-'], 'understand wo: Invalid argument'],
    ['a name with a slash', ['--mount', '3', '../m', 'ro', '-', '-'], 'stage ../m: Invalid argument'],
    ['a name of its own', ['--stage', 'disk', '/usr'], 'stage disk: Invalid argument'],
    ['an id', ['--mount', '3', 'm', 'ro', '-1', '-'], 'parse -1: Invalid argument'],
    ['a group', ['--mount', '3', 'm', 'ro', '1', '-1'], 'parse -1: Invalid argument'],
    [
      'something of root’s without root',
      ['--rootless', '--runtime', '0', '--stage', 'a', '/usr', '--devices'],
      'use without root what takes root, or no runtime: Invalid argument',
    ],
    ['an id without root', ['--rootless', '--runtime', '1', '--stage', 'a', '/usr'], 'use without root what takes root, or no runtime: Invalid argument'],
    ['no runtime without root', ['--rootless'], 'use without root what takes root, or no runtime: Invalid argument'],
    ['--fix', ['--fix', '/sys'], 'give, hide, show, fix or close without --runtime: Invalid argument'],
    ['--copied', ['--copied', '/bin/true'], 'copy without --runtime, or with --rootless: Invalid argument'],
    ['a layer that climbs', ['--layer', '/../x', '/usr'], 'lay under /../x: Invalid argument'],
    ['a size', ['--root', '1', '1m', '1'], 'parse 1m: Invalid argument'],
    ['a descriptor', ['--pass', '2', '100'], 'use descriptor 2: Invalid argument'],
    ['an option that is none', ['--mounts', '3'], 'understand --mounts: Invalid argument'],
  ])('%s ends it', (_, options, words) => {
    expect(run([launcher, ...options, '--', '/bin/true'])).toEqual({ status: 71, said: `launcher: ${words}\n` })
  })
})

describe('what a runtime sees', () => {
  skipGroup(!isRoot && 'only root can mount')
  test('of what is fixed it can change nothing, though a file there was opened for it', () => {
    const runtime = `--runtime 65534 -- --dir /proc -- /bin/sh -c 'echo told >&3; cat /mnt/file; touch /mnt/other'`
    const script = `mount -t tmpfs none /mnt && touch /mnt/file && ${launcher} --open 3 /mnt/file --stage usr /usr --fix /mnt ${runtime}`
    expect(inOwnNamespace(script)).toEqual({ status: 1, said: "told\ntouch: cannot touch '/mnt/other': Read-only file system\n" })
  })
})

test('what is passed on has its new number, and nothing else is inherited', () => {
  writeFileSync(join(folder, 'f'), 'passed')
  const script = `exec 3<f 4<f 7<f; exec ${launcher} --pass 3 128 --pass 7 4 -- /bin/sh -c 'cat /proc/self/fd/128; ls /proc/self/fd | tr "\\n" " "'`
  // 3 is the folder that ls has open.
  expect(run(['/bin/sh', '-c', script]).said).toBe('passed0 1 128 2 3 4 ')
})

describe('a source by descriptor', () => {
  skipGroup(!isRoot && 'only root can mount')

  test('is the one mount: neither what is mounted below it nor what is mounted there later', () => {
    const script = [
      'mount -t tmpfs none . && cd "$PWD" && mkdir -p source/below && mount --make-shared . && mount -t tmpfs none source/below && echo x > source/below/hidden',
      'exec 3<source',
      `exec ${launcher} --mount 3 m ro - - -- /bin/sh -c 'ls -A /tmp/m /tmp/m/below; grep -c " /tmp/m" /proc/self/mountinfo; grep " /tmp/m " /proc/self/mountinfo | grep -c -e shared: -e master:'`,
    ]
    expect(inOwnNamespace(script.join('\n')).said).toBe('/tmp/m:\nbelow\n\n/tmp/m/below:\n1\n0\n')
  })

  test('belongs to the id it is mapped to; others are nobody', () => {
    writeFileSync(join(folder, 'owned'), '')
    writeFileSync(join(folder, 'other'), '')
    for (const path of ['.', 'owned']) chownSync(join(folder, path), 4321, 4322)
    const script = `exec 3<.; exec ${launcher} --mount 3 m rw 70000 4322 -- /usr/bin/stat -c '%u %g' /tmp/m /tmp/m/owned /tmp/m/other`
    expect(run(['/bin/sh', '-c', script]).said).toBe('70000 70000\n70000 70000\n65534 65534\n')
  })

  test('on a filesystem that cannot map ids is left as it is to be read, and refused to be written', () => {
    const overlaid = (mode: string) =>
      inOwnNamespace(
        [
          'mount -t tmpfs none . && cd "$PWD" && mkdir a b c && echo readable > a/f && mount -t overlay -o lowerdir=a:b none c && exec 3<c',
          `exec ${launcher} --mount 3 m ${mode} 70000 - -- /bin/cat /tmp/m/f`,
        ].join('\n'),
      )
    expect(overlaid('ro')).toEqual({ status: 0, said: 'readable\n' })
    expect(overlaid('rw')).toEqual({ status: 71, said: 'launcher: map owner of m: Invalid argument\n' })
  })

  test('leaves neither a mount nor a process of the launcher’s on the host', () => {
    const before = readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes(folder) || line.includes(' /tmp/m '))
    const script = `exec 3<.; exec ${launcher} --root 2013265920 1048576 512 --layer /x /usr/bin --mount 3 m ro 70000 - -- /bin/sh -c 'ls /proc | grep -c "^[0-9]"; echo $$; cat /proc/$$/task/$$/children'`
    const [, pid, children] = run(['/bin/sh', '-c', script]).said.split('\n')
    expect([Number(pid) > 1, children?.trim().split(' ').length]).toEqual([true, 1])
    expect(
      readFileSync('/proc/self/mountinfo', 'utf8')
        .split('\n')
        .filter((line) => line.includes(folder) || line.includes(' /tmp/m ')),
    ).toEqual(before)
    expect(readdirSync(folder)).toEqual([])
  })
})
