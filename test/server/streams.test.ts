import { readdirSync } from 'node:fs'
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnServer, ownServer, plain } from './own-server.js'

describe('streams', () => {
  let own: OwnServer
  let key: string
  beforeAll(async () => {
    own = await ownServer()
    key = await own.key('red')
  })
  afterAll(() => own[Symbol.asyncDispose]())

  test('a run is told as NDJSON, as Server-Sent Events or as one value, by Accept', async () => {
    const body = { command: ['sh', '-c', 'printf out; printf err >&2'], sandbox: plain }
    const lines = (await own.ask('/v1/runs', { key, body, headers: { accept: 'application/x-ndjson' } })).text.trim().split('\n')
    const told = lines.map((line) => JSON.parse(line) as { type: string; data?: string })
    expect(told[0]?.type).toBe('begun')
    expect(told.at(-1)?.type).toBe('ended')
    expect(told.filter(({ data }) => data).map(({ type, data }) => [type, Buffer.from(data ?? '', 'base64').toString()])).toEqual(
      expect.arrayContaining([
        ['stdout', 'out'],
        ['stderr', 'err'],
      ]),
    )
    const events = (await own.ask('/v1/runs', { key, body, headers: { accept: 'text/event-stream' } })).text
    expect(events).toMatch(/^event: begun\ndata: \{.*\}\n\n(?:.|\n)*event: ended\ndata: \{.*\}\n\n$/)
    expect((await own.ask('/v1/runs', { key, body })).json()).toMatchObject({ stdout: 'out', stderr: 'err', exitCode: 0 })
  })

  test('what a run prints that is no text comes as base64 beside it', async () => {
    const { stdout, stdoutBase64 } = (await own.ask('/v1/runs', { key, body: { command: ['printf', '\\377a'], sandbox: plain } })).json()
    expect([stdout, stdoutBase64]).toEqual(['\ufffda', '/2E='])
  })

  test('a run is given its input with the request', async () => {
    const answer = await own.ask('/v1/runs', { key, body: { command: ['tr', 'a-z', 'A-Z'], input: 'loud', sandbox: plain } })
    expect(answer.json()).toMatchObject({ stdout: 'LOUD', exitCode: 0 })
  })

  test('a run whose reader leaves is killed, and its sandbox is gone', async () => {
    const before = (await own.ledger.quotas.usage('red')).sandboxes.used
    await leaveAt('/v1/runs', { command: ['sleep', '1000'], sandbox: plain }, 'begun')
    await expect.poll(async () => (await own.ledger.quotas.usage('red')).sandboxes.used).toBe(before)
  })

  test('a process that is kept goes on when its reader leaves', async () => {
    const client = own.client(key)
    const { id } = await client.create(plain)
    await leaveAt(`/v1/sandboxes/${id}/processes`, { command: ['sleep', '1000'], background: true, tag: 'kept' }, 'started')
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect((await client.processes.list(id)).map(({ tag, state }) => [tag, state === 'ended'])).toEqual([['kept', false]])
    await client.close(id)
  })

  /** Reads until a word comes, then cuts the connection. */
  function leaveAt(path: string, body: unknown, word: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}`, accept: 'application/x-ndjson', 'content-type': 'application/json' }
      const sent = request({ host: '127.0.0.1', port: own.port, path, method: body === undefined ? 'GET' : 'POST', headers }, (response) => {
        if (word === '') {
          sent.destroy()
          resolve()
        }
        response.on('data', (piece: Buffer) => {
          if (!piece.toString().includes(word)) return
          sent.destroy()
          resolve()
        })
        response.on('error', () => undefined)
      })
      sent.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ECONNRESET' ? resolve() : reject(error)))
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }

  test('S-20 a thousand readers that leave leave nothing behind', async () => {
    const client = own.client(key)
    const { id } = await client.create(plain)
    const { pid } = await client.start(id, { command: ['sleep', '1000'], background: true })
    const paths = [`/v1/sandboxes/${id}/events`, `/v1/sandboxes/${id}/processes/${pid}/output`, `/v1/sandboxes/${id}/files/watch?path=.`, '/v1/events']
    const descriptors = (): number => readdirSync('/proc/self/fd').length
    for (const path of paths) await leaveAt(path, undefined, '')
    await expect.poll(() => descriptors()).toBeLessThan(200)
    const before = descriptors()
    for (let n = 0; n < 1000; n += 20)
      await Promise.all(
        Array.from({ length: 20 }, (_, index) => leaveAt(paths[(n + index) % 4 === 2 && n % 100 !== 0 ? 0 : (n + index) % 4] ?? '', undefined, '')),
      )
    await expect.poll(() => descriptors() - before, { timeout: 20_000 }).toBeLessThanOrEqual(4)
    await client.close(id)
    expect((await own.ask('/v1/health')).status).toBe(200)
  })

  test('S-19 a create that is asked for again with its key is made once, however often and at once', async () => {
    const headers = { 'idempotency-key': 'the-same' }
    const body = { ...plain, name: 'once' }
    const answers = await Promise.all(Array.from({ length: 10 }, () => own.ask('/v1/sandboxes', { key, body, headers })))
    expect(new Set(answers.map((answer) => answer.json().id)).size).toBe(1)
    expect(((await own.ask('/v1/sandboxes?name=once', { key })).json().items as unknown[]).length).toBe(1)
    expect((await own.ask('/v1/sandboxes', { key, body: { ...body, name: 'other' }, headers })).status).toBe(409)
    const other = await own.ask('/v1/sandboxes', { key: await own.key('blue'), body, headers })
    expect(other.json().id).not.toBe(answers[0]?.json().id)
  })

  test('S-19 a run and a program are done once for a key, and a stream takes none', async () => {
    const key = await own.key('red')
    const { id } = await own.client(key).create(plain)
    const asked = [
      ['/v1/runs', { command: ['sh', '-c', 'echo $$; sleep 0.2'], sandbox: plain }],
      [`/v1/sandboxes/${id}/processes`, { command: ['sleep', '60'], background: true }],
    ] as const
    for (const [path, body] of asked) {
      const ask = (accept = 'application/json') => own.ask(path, { key, body, headers: { 'idempotency-key': `once ${path}`.replaceAll(' ', '-'), accept } })
      const answers = [...(await Promise.all([ask(), ask(), ask()])), await ask()]
      expect([new Set(answers.map(({ text }) => text)).size, answers[0]?.status]).toEqual([1, path === '/v1/runs' ? 200 : 201])
      expect((await ask('application/x-ndjson')).status).toBe(400)
    }
    expect(await own.client(key).processes.list(id)).toHaveLength(1)
  })

  test('S-19 the same wish of an admin for two tenants is two wishes', async () => {
    const key = await own.key('default', 'admin')
    const ask = (tenant: string) => own.ask('/v1/sandboxes', { key, body: plain, headers: { 'idempotency-key': 'for-each', 'glovebox-tenant': tenant } })
    const [red, blue] = [await ask('red'), await ask('blue')]
    expect([red.status, blue.status, red.json().id === blue.json().id]).toEqual([201, 201, false])
  })

  test('S-19 closing twice is quiet, and closing while programs start leaves nothing', async () => {
    const client = own.client(key)
    const { id } = await client.create(plain)
    const starts = Array.from({ length: 5 }, () => client.start(id, { command: ['sleep', '100'] }).catch(() => undefined))
    await Promise.all([client.close(id), client.close(id), ...starts])
    await client.close(id)
    await expect(client.info(id)).rejects.toMatchObject({ code: 'closed' })
  })

  test('lists come in pages that neither repeat nor skip what stays', async () => {
    const client = own.client(await own.key('blue'))
    const blue = await own.key('blue')
    const made = await Promise.all(Array.from({ length: 7 }, () => client.create({ ...plain, agent: 'pager' })))
    const seen: unknown[] = []
    let next: unknown
    do {
      const cursor = next === undefined ? '' : `&cursor=${String(next)}`
      const page = (await own.ask(`/v1/sandboxes?agent=pager&limit=3${cursor}`, { key: blue })).json()
      seen.push(...(page.items as { id: string }[]).map(({ id }) => id))
      next = page.next
    } while (next !== undefined)
    expect(seen.sort()).toEqual(made.map(({ id }) => id).sort())
    expect(await client.closeAll({ agent: 'pager' })).toBe(7)
  })
})
