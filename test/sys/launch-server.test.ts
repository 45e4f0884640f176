import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { type LaunchServer, startLaunchServer } from '../../src/sys/launch-server.js'
import { nativeProgram } from '../../src/sys/native.js'
import type { SpawnedProcess } from '../../src/sys/spawn.js'

const launcher = nativeProgram('launcher')

function sh(server: LaunchServer, script: string, { pipes = 0, options = [] as string[] } = {}): Promise<SpawnedProcess> {
  return server.launch([launcher, '--parent', `${server.pid}`, ...options, '--', '/bin/sh', '-c', script], pipes)
}

function socketOf({ pid }: LaunchServer): string {
  const name = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')[2]
  expect(readFileSync('/proc/net/unix', 'latin1')).toContain(`@${name}`)
  return name as string
}

function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ')
  } catch {
    return false
  }
}

test('the channel is stdin and stdout, and the last words are complete when the end is told', async () => {
  const server = await startLaunchServer(launcher)
  const process = await sh(server, 'cat; /usr/bin/seq 1 100000 >&2; echo last >&2; exit 3')
  process.channel.end('hello')
  expect(await text(process.channel)).toBe('hello')
  expect(await process.wait()).toEqual({ code: 3, signal: null })
  expect(process.diagnosis().split('\n').at(-1)).toBe('last')
})

test('whoever is launched at the same time has streams of its own, and nothing else is inherited', async () => {
  const server = await startLaunchServer(launcher)
  const said = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      const process = await sh(server, 'cat; cat <&7; ls /proc/self/fd | tr "\\n" " "', { pipes: 1, options: ['--pass', '3', '7'] })
      process.channel.end(`in ${index} `)
      process.pipes.get(3)?.end(`pipe ${index} `)
      return text(process.channel)
    }),
  )
  // 3 is the folder that ls has open.
  expect(said).toEqual(Array.from({ length: 40 }, (_, index) => `in ${index} pipe ${index} 0 1 2 3 7 `))
})

test('what it launched is its child, is signalled by it, and its end by a signal is told', async () => {
  const server = await startLaunchServer(launcher)
  const process = await sh(server, 'echo $PPID; exec sleep 1000')
  expect(String((await process.channel[Symbol.asyncIterator]().next()).value)).toBe(`${server.pid}\n`)
  process.signal('SIGKILL')
  expect(await process.wait()).toEqual({ code: null, signal: 'SIGKILL' })
})

test('what is launched wrongly says so by its end', async () => {
  const server = await startLaunchServer(launcher)
  const process = await server.launch([launcher, '--nothing', '--', '/bin/true'], 0)
  expect(await process.wait()).toEqual({ code: 71, signal: null })
  expect(process.diagnosis()).toBe('launcher: understand --nothing: Invalid argument')
})

test('when it is killed, so is what it launched, and that is told', async () => {
  const server = await startLaunchServer(launcher)
  const launched = await sh(server, 'exec sleep 1000')
  process.kill(server.pid, 'SIGKILL')
  expect(await launched.wait()).toEqual({ code: null, signal: 'SIGKILL' })
  await expect.poll(() => isAlive(launched.pid)).toBe(false)
  expect(server.isOver).toBe(true)
  await expect(sh(server, 'true')).rejects.toMatchObject({ code: 'unavailable' })
})

test('nobody but its owner is listened to', async () => {
  const server = await startLaunchServer(launcher)
  const stranger = `require('node:net').connect('\\0${socketOf(server)}').on('close', () => console.log('closed')).on('error', () => undefined).write(Buffer.alloc(8))`
  expect(execFileSync(process.execPath, ['-e', stranger], { encoding: 'utf8' })).toBe('closed\n')
  const own = await sh(server, 'echo served')
  expect(await text(own.channel)).toBe('served\n')
})

test('one that is told to await its owner goes on after one byte, and ends when none comes', async () => {
  const server = await startLaunchServer(launcher)
  const [released, left] = await Promise.all([sh(server, 'cat', { options: ['--await'] }), sh(server, 'echo never', { options: ['--await'] })])
  released.channel.end('+rest')
  left.channel.end()
  expect(await Promise.all([text(released.channel), text(left.channel)])).toEqual(['rest', ''])
  expect(await left.wait()).toEqual({ code: 71, signal: null })
})

test('a launcher that does not serve is unavailable', async () => {
  await expect(startLaunchServer('/bin/false')).rejects.toMatchObject({ code: 'unavailable' })
  await expect(startLaunchServer('/nowhere/launcher')).rejects.toMatchObject({ code: 'unavailable' })
})
