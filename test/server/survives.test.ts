import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { cliPath } from '../cli/cli.js'
import { ask, ownServer, plain } from './own-server.js'
import { serverFolder, startServer } from './started-server.js'

async function answers(socket: string): Promise<boolean> {
  return ask(socket, '/v1/health').then(
    ({ status }) => status === 200,
    () => false,
  )
}

test('S-23 what a handler throws is 500 without its words, is in the log, and the next request is served', async () => {
  await using own = await ownServer({ templates: { list: () => Promise.reject(new TypeError('secret words of /root/place')) } })
  const key = await own.key('red')
  const answer = await own.ask('/v1/templates', { key })
  expect([answer.status, answer.json().code]).toEqual([500, 'internal'])
  expect(answer.text).not.toMatch(/secret words|\/root/)
  expect(own.lines.at(-1)).toMatchObject({ route: 'templates.list', status: 500, defect: expect.stringContaining('secret words') as string })
  expect((await own.ask('/v1/sandboxes', { key })).status).toBe(200)
})

/** Loaded before the program: when it is told to, something is thrown that nobody catches. */
const strays = `process.on('SIGUSR2', () => {
  Promise.reject(new Error('a stray rejection'))
  setTimeout(() => { throw new Error('a stray exception') }, 100)
})`

test('S-23 what is thrown where nobody catches it is in the log, and the server goes on', async () => {
  using folder = await serverFolder()
  const server = await startServer(folder, { env: { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(strays)}` } })
  server.child.kill('SIGUSR2')
  await expect.poll(() => server.said()).toMatch(/a stray rejection[^]*a stray exception/)
  expect((await server.ask('/v1/sandboxes')).status).toBe(200)
  expect(await server.stop()).toBe(0)
})

test('S-23 a log that nobody reads any more, or that has no room, keeps nobody from being served', async () => {
  using folder = await serverFolder()
  const server = await startServer(folder)
  server.child.stderr.destroy()
  for (let n = 0; n < 50; n += 1) expect((await server.ask('/v1/sandboxes')).status).toBe(200)
  expect(await server.stop()).toBe(0)
  const full = openSync('/dev/full', 'w')
  const child = spawn(process.execPath, [cliPath, 'serve', '--socket', folder.socket, '--state', folder.state], { stdio: ['ignore', 'ignore', full] })
  closeSync(full)
  await expect.poll(() => answers(folder.socket)).toBe(true)
  for (let n = 0; n < 50; n += 1) expect((await ask(folder.socket, '/v1/sandboxes', { key: folder.keys.default })).status).toBe(200)
  const over = once(child, 'exit')
  child.kill('SIGTERM')
  expect(await over).toEqual([0, null])
})

test('S-23 whoever leaves while being answered, at once or in the midst of it, takes nothing along', async () => {
  await using own = await ownServer()
  const key = await own.key('red')
  const { id } = await own.client(key).create(plain)
  const leave = (path: string, afterMs: number): Promise<unknown> => {
    const socket = connect(own.port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\naccept: application/x-ndjson\r\n\r\n`)
    setTimeout(() => socket.resetAndDestroy(), afterMs)
    return once(socket, 'close')
  }
  const paths = ['/v1/openapi.json', `/v1/sandboxes/${id}/files/tar?path=/usr/share`, '/v1/events', `/v1/sandboxes/${id}/processes`]
  await Promise.all(Array.from({ length: 200 }, (_, index) => leave(paths[index % paths.length] ?? '', index % 20)))
  expect((await own.ask('/v1/sandboxes', { key })).status).toBe(200)
  expect(own.lines.filter(({ defect }) => defect)).toEqual([])
  await expect.poll(() => own.server.connections).toBeLessThanOrEqual(2)
})
