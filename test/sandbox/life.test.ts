import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine/engine.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { rejectionOf } from '../engine/collect.js'
import { createPlainEngine, PlainDriver } from '../engine/plain-driver.js'
import { isRunning, markedSleep, waitUntil } from '../engine/processes.js'
import { startScript } from '../sys/run-script.js'

let platform: Engine
let sandbox: Sandbox

beforeEach(async () => {
  platform = createPlainEngine(new PlainDriver())
  sandbox = await Sandbox.create({ platform })
})

afterEach(() => platform[Symbol.asyncDispose]())

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}

async function serve(): Promise<number> {
  const port = await freePort()
  await sandbox.spawn([process.execPath, fileURLToPath(new URL('../engine/programs/servers.mjs', import.meta.url)), 'http', `${port}`])
  return port
}

describe('a listener', () => {
  test('is refused by a sandbox that was closed', async () => {
    await sandbox.close()
    expect(() => sandbox.on('exit', () => undefined)).toThrow(expect.objectContaining({ code: 'closed' }))
  })

  test('is told of what it asked for, until it leaves', async () => {
    const heard: string[] = []
    const leave = sandbox.on('exit', ({ ending }) => heard.push(ending.outcome.kind))
    sandbox.on('paused', ({ reason }) => heard.push(reason))
    sandbox.on('closed', ({ type }) => heard.push(type))
    await sandbox.run('true')
    await sandbox.pause()
    await sandbox.resume()
    await expect.poll(() => heard).toEqual(['exited', 'its owner paused it'])
    leave()
    leave()
    await sandbox.run('true')
    await sandbox.close()
    await expect.poll(() => heard).toEqual(['exited', 'its owner paused it', 'closed'])
  })

  test('that throws breaks nothing, for nobody', async () => {
    const heard: string[] = []
    sandbox.on('exit', () => {
      throw new Error('broken listener')
    })
    sandbox.on('exit', () => Promise.reject(new Error('broken too')))
    sandbox.on('exit', () => heard.push('heard'))
    await sandbox.run('true')
    await sandbox.run('true')
    await expect.poll(() => heard).toEqual(['heard', 'heard'])
  })

  test('of nothing there is, or that is none, is refused by name', () => {
    expect(() => sandbox.on('exits' as 'exit', () => undefined)).toThrow('type: expected one of exit, paused')
    expect(() => sandbox.on('exit', 'f' as unknown as () => void)).toThrow('listener: expected a function')
  })
})

describe('a paused sandbox', () => {
  test('is resumed by whoever connects to it so', async () => {
    await sandbox.pause()
    expect((await (await Sandbox.connect(sandbox.id, { platform })).info()).state).toBe('paused')
    const again = await Sandbox.connect(sandbox.id, { platform, resume: true })
    expect((await again.info()).state).toBe('running')
    expect((await sandbox.run('echo on')).stdout).toBe('on\n')
    expect(await rejectionOf(Sandbox.connect(sandbox.id, { platform, resume: 1 as unknown as boolean }))).toMatchObject({ code: 'invalid' })
  })

  test('is wanted without its memory in so many words', async () => {
    expect(await rejectionOf(sandbox.pause({ memory: 'no' as unknown as boolean }))).toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/^memory: /) as string,
    })
    expect(await rejectionOf(sandbox.pause({ memorry: false } as object))).toMatchObject({ code: 'invalid' })
  })

  test('lives on by what is said of it', async () => {
    const { expiresAt } = await sandbox.extend('2h')
    expect(Date.parse(expiresAt) - Date.now()).toBeGreaterThan(7_190_000)
    expect(Date.parse((await sandbox.setLifetime('1m')).expiresAt) - Date.now()).toBeLessThanOrEqual(60_000)
  })
})

describe('a url', () => {
  test('is forwarded once, however often and at once it is asked for', async () => {
    const port = await serve()
    const urls = await Promise.all([sandbox.url(port), sandbox.url(port), sandbox.url(port)])
    expect(new Set([...urls, await sandbox.url(port)]).size).toBe(1)
    expect(await (await fetch(`${urls[0]}/x`)).text()).toMatch(/^GET \/x /)
  })

  test('that could not be had is tried again', async () => {
    const port = await freePort()
    expect(await rejectionOf(sandbox.url(port, { waitFor: 100 }))).toMatchObject({ code: 'not-found' })
    await sandbox.spawn([process.execPath, fileURLToPath(new URL('../engine/programs/servers.mjs', import.meta.url)), 'http', `${port}`])
    expect((await fetch(await sandbox.url(port))).status).toBe(200)
  })

  test('is another once its sandbox is gone: none', async () => {
    const port = await serve()
    await sandbox.waitForPort(port)
    const forward = await sandbox.forward(port)
    await sandbox.close()
    expect(await rejectionOf(fetch(forward.url))).toBeInstanceOf(Error)
    expect(await rejectionOf(sandbox.forward(port))).toMatchObject({ code: 'closed' })
  })
})

test('a process with a forward lives until it is closed, and then ends by itself', async () => {
  const { child, firstLine, ended } = await startScript(new URL('programs/hold-forward.ts', import.meta.url))
  expect(await firstLine).toBe('forwarded')
  await sleep(500)
  expect(child.exitCode).toBe(null)
  child.stdin?.end('close\n')
  expect(await ended).toMatchObject({ code: 0, stderr: '' })
})

test('a process of ours does not wait for a program that it let go, which ends with it; taken back, it waits', async () => {
  const script = new URL('programs/hold-process.ts', import.meta.url)
  const { marker } = markedSleep()
  const letGo = await startScript(script, [marker])
  expect(await letGo.ended).toMatchObject({ code: 0, stderr: '' })
  await waitUntil(() => !isRunning(marker))
  const again = await startScript(script, ['5', 'again'])
  expect(await again.firstLine).toBe('started')
  await sleep(300)
  expect(again.child.exitCode).toBe(null)
  expect(await again.ended).toMatchObject({ code: 0, stderr: '' })
})
