/** A launcher that serves starts a runtime from a copy of it in memory, which it keeps. The runtimes here tell where they were started from. */
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect } from 'vitest'
import { type LaunchServer, startLaunchServer } from '../../src/sys/launch-server.js'
import { nativeProgram } from '../../src/sys/native.js'
import type { SpawnedProcess } from '../../src/sys/spawn.js'
import { testUnless } from '../unless.js'

const launcher = nativeProgram('launcher')
const notRoot = process.getuid?.() !== 0 && 'only root starts runtimes so'
const inMemory = '/memfd:runtime (deleted)\n'

let folder: string
let runtime: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-copied-'))
  runtime = join(folder, 'runtime')
  copyFileSync('/usr/bin/readlink', runtime)
  chmodSync(runtime, 0o755)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function start(server: LaunchServer, copied: readonly string[]): Promise<SpawnedProcess> {
  const options = ['--parent', `${server.pid}`, '--stage', 'usr', '/usr', ...copied, '--runtime', '65534']
  return server.launch([launcher, ...options, '--', '--dir', '/proc', '--', runtime, '/proc/self/exe'], 0)
}

const said = async (server: LaunchServer, copied: readonly string[] = ['--copied', runtime]): Promise<string> => text((await start(server, copied)).channel)

/** What a server has open of copies, as paths at which they can be opened. */
function copiesOf({ pid }: LaunchServer): string[] {
  const own = `/proc/${pid}/fd`
  return readdirSync(own).flatMap((fd) => (readlinkSync(join(own, fd)).startsWith('/memfd:') ? [join(own, fd)] : []))
}

testUnless(notRoot)('the copy is made once, and of one that is not to be copied there is none', async () => {
  const server = await startLaunchServer(launcher)
  expect([await said(server, []), copiesOf(server)]).toEqual([`${runtime}\n`, []])
  expect(await said(server)).toBe(inMemory)
  const made = copiesOf(server).map((path) => statSync(path).ino)
  expect(made).toHaveLength(1)
  expect([await said(server), copiesOf(server).map((path) => statSync(path).ino)]).toEqual([inMemory, made])
})

testUnless(notRoot)('the copy is sealed as runc wants its own to be, and cannot be written to', async () => {
  const server = await startLaunchServer(launcher)
  await said(server)
  const script = `
import fcntl, os, sys
print(fcntl.fcntl(os.open(sys.argv[1], os.O_RDONLY), 1034))
try: os.pwrite(os.open(sys.argv[1], os.O_RDWR), b"x", 0)
except PermissionError as error: print(error.errno)
`
  // F_SEAL_SEAL, SHRINK, GROW and WRITE; EPERM.
  expect(execFileSync('python3', ['-c', script, copiesOf(server)[0] ?? ''], { encoding: 'utf8' })).toBe('15\n1\n')
})

testUnless(notRoot)('a runtime that was exchanged is started as it is now, and the copy of what it was goes', async () => {
  const server = await startLaunchServer(launcher)
  expect(await said(server)).toBe(inMemory)
  rmSync(runtime)
  copyFileSync('/bin/echo', runtime)
  expect([await said(server), copiesOf(server).length]).toEqual(['/proc/self/exe\n', 1])
})

testUnless(notRoot)('one that was changed in its place is too', async () => {
  const server = await startLaunchServer(launcher)
  expect(await said(server)).toBe(inMemory)
  copyFileSync('/bin/echo', runtime)
  expect([await said(server), copiesOf(server).length]).toEqual(['/proc/self/exe\n', 1])
})

testUnless(notRoot)('what is not the runtime is not started in its place', async () => {
  const server = await startLaunchServer(launcher)
  const process = await start(server, ['--copied', '/bin/echo'])
  expect(await process.wait()).toEqual({ code: 71, signal: null })
  expect(process.diagnosis()).toBe('launcher: copy /bin/echo: Invalid argument')
})

testUnless(notRoot)('where nobody keeps a copy it is started by its path', async () => {
  const argv = ['--stage', 'usr', '/usr', '--copied', runtime, '--runtime', '65534', '--', '--dir', '/proc', '--', runtime, '/proc/self/exe']
  expect(execFileSync(launcher, argv, { encoding: 'utf8' })).toBe(`${runtime}\n`)
})
