import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const script = fileURLToPath(new URL('../../glovebox', import.meta.url))
let clone: string

/** A clone whose set-up only says so and ends with `code`, and whose CLI prints its arguments. */
beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), 'glovebox-clone-'))
  copyFileSync(script, join(clone, 'glovebox'))
  write('scripts/setup.mjs', "process.stderr.write('set up\\n')\nprocess.exitCode = Number(process.env.SETUP_CODE ?? 0)\n")
  write('dist/cli/main.js', 'console.log(JSON.stringify(process.argv.slice(2)))\n')
  write('package.json', '{ "type": "module" }\n')
  for (const path of ['package-lock.json', 'node_modules/.package-lock.json', 'src/a.ts', 'warden/a.c', 'build/setup/stamp']) write(path, '')
  for (const path of ['src/a.ts', 'src', 'warden/a.c', 'warden', 'scripts/setup.mjs', 'scripts', 'package.json', 'package-lock.json', 'glovebox']) age(path, 60)
})
afterEach(() => rmSync(clone, { recursive: true, force: true }))

function write(path: string, text: string): void {
  mkdirSync(dirname(join(clone, path)), { recursive: true })
  writeFileSync(join(clone, path), text)
}

function age(path: string, seconds: number): void {
  const then = new Date(Date.now() - seconds * 1000)
  utimesSync(join(clone, path), then, then)
}

function glovebox(args: readonly string[], options: { readonly env?: NodeJS.ProcessEnv; readonly as?: string } = {}) {
  const { status, stdout, stderr } = spawnSync(options.as ?? join(clone, 'glovebox'), args, {
    cwd: '/',
    env: { ...process.env, ...options.env },
    encoding: 'utf8',
  })
  return { code: status, stdout, stderr }
}

const started = (...args: string[]) => ({ code: 0, stdout: `${JSON.stringify(args)}\n`, stderr: '' })

describe('./glovebox', () => {
  it('starts the CLI at once when nothing changed, with the arguments as they are', () => {
    expect(glovebox(['run', '--', 'a b', '', '$HOME', '*'])).toEqual(started('run', '--', 'a b', '', '$HOME', '*'))
  })

  it('tells the CLI how it was called, for its hints', () => {
    write('dist/cli/main.js', 'console.log(process.env.GLOVEBOX_NAME)\n')
    expect(glovebox([])).toEqual({ code: 0, stdout: `${join(clone, 'glovebox')}\n`, stderr: '' })
  })

  it('can be a link elsewhere', () => {
    symlinkSync('glovebox', join(clone, 'first'))
    symlinkSync(join(clone, 'first'), join(clone, 'second'))
    expect(glovebox(['x'], { as: join(clone, 'second') })).toEqual(started('x'))
  })

  it.each(['src/a.ts', 'src', 'warden/a.c', 'scripts/setup.mjs', 'package.json', 'package-lock.json', 'glovebox'])(
    'sets up again when %s is newer than the stamp',
    (path) => {
      age(path, -60)
      expect(glovebox(['x'])).toEqual({ ...started('x'), stderr: 'set up\n' })
    },
  )

  it.each(['build/setup/stamp', 'node_modules/.package-lock.json'])('sets up again when %s is gone', (path) => {
    rmSync(join(clone, path))
    expect(glovebox(['x'])).toEqual({ ...started('x'), stderr: 'set up\n' })
  })

  it('stops with 125 when the set-up failed', () => {
    age('src/a.ts', -60)
    expect(glovebox(['doctor'], { env: { SETUP_CODE: '1' } })).toEqual({ code: 125, stdout: '', stderr: 'set up\n' })
  })

  it.each([
    ['doctor', { ...started('doctor'), stderr: 'set up\n' }],
    ['--help', { ...started('--help'), stderr: 'set up\n' }],
    ['run', { code: 125, stdout: '', stderr: 'set up\n' }],
  ])('without the native programs, %s does what it can', (command, expected) => {
    age('src/a.ts', -60)
    expect(glovebox([command], { env: { SETUP_CODE: '3' } })).toEqual(expected)
  })

  it.each([
    ['v18.20.4', 'glovebox: needs Node.js 20.19 or newer, and found v18.20.4\n'],
    ['v20.18.3', 'glovebox: needs Node.js 20.19 or newer, and found v20.18.3\n'],
  ])('refuses Node %s', (version, line) => {
    age('src/a.ts', -60)
    write('bin/node', `#!/bin/sh\necho ${version}\n`)
    chmodSync(join(clone, 'bin/node'), 0o755)
    const refused = glovebox(['x'], { env: { PATH: `${join(clone, 'bin')}:/usr/bin:/bin` } })
    expect({ code: refused.code, stdout: refused.stdout, line: refused.stderr.slice(0, line.length) }).toEqual({ code: 125, stdout: '', line })
  })

  it('starts Node once when nothing changed', () => {
    write('bin/node', `#!/bin/sh\necho started\nexec ${process.execPath} "$@"\n`)
    chmodSync(join(clone, 'bin/node'), 0o755)
    const { stdout } = glovebox(['x'], { env: { PATH: `${join(clone, 'bin')}:/usr/bin:/bin` } })
    expect(stdout).toBe('started\n["x"]\n')
  })

  it('says so when there is no Node', () => {
    const refused = glovebox(['x'], { env: { PATH: join(clone, 'bin') } })
    expect(refused).toMatchObject({ code: 125, stdout: '' })
    expect(refused.stderr).toContain('found none on PATH')
  })
})
