import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fake } from '../cli/cli.js'
import { enforcesMemory } from '../cli/machine.js'
import { type Agent, firstAgent, generations, modernAgent } from './connections.js'

const patience = 120_000

describe.each(generations)('glovebox mcp for %s', (_name, connect) => {
  let agent: Agent
  beforeAll(async () => {
    agent = await connect(fake)
  }, patience)
  afterAll(() => agent.close())

  test('has five tools, each with schemas and what it does to the world', async () => {
    const tools = await agent.tools()
    expect(tools.map((tool) => tool.name)).toEqual(['run_code', 'run_command', 'read_file', 'write_file', 'list_files'])
    for (const tool of tools)
      expect(tool).toMatchObject({
        inputSchema: { type: 'object', additionalProperties: false },
        outputSchema: { type: 'object' },
        annotations: { openWorldHint: false },
      })
    expect(tools.filter((tool) => (tool.annotations as { readOnlyHint: boolean }).readOnlyHint).map((tool) => tool.name)).toEqual(['read_file', 'list_files'])
  })

  test('keeps variables from call to call, and forgets them when told', { timeout: patience }, async () => {
    await agent.call('run_code', { code: 'kept = 41' })
    expect((await agent.call('run_code', { code: 'kept + 1' })).structuredContent).toMatchObject({ status: 'ok', text: '42' })
    const forgotten = await agent.call('run_code', { code: 'kept', restart: true })
    expect(forgotten.structuredContent).toMatchObject({ status: 'error', error: { name: 'NameError', line: 1 } })
  })

  test('tells how a command ended and what it printed', async () => {
    const { structuredContent, isError } = await agent.call('run_command', { command: 'cat; echo oops >&2; exit 3', stdin: 'in' })
    expect({ structuredContent, isError: isError ?? false }).toMatchObject({
      structuredContent: { outcome: 'exited', exit_code: 3, stdout: 'in', stderr: 'oops\n' },
      isError: false,
    })
  })

  test('refuses what it does not know by name', async () => {
    const refused = await agent.call('read_file', { path: 'a', colour: 'red' })
    expect(refused).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('colour') }] })
  })
})

describe('glovebox mcp', () => {
  let agent: Agent
  beforeAll(async () => {
    agent = await firstAgent(fake)
  }, patience)
  afterAll(() => agent.close())

  test('cuts long output in the middle, and says how to get the rest', async () => {
    const { structuredContent, content } = await agent.call('run_command', { command: 'seq 1 100000' })
    const stdout = String(structuredContent?.['stdout'])
    expect(stdout.length).toBeLessThan(31_000)
    expect([stdout.startsWith('1\n2\n'), stdout.endsWith('99999\n100000\n')]).toEqual([true, true])
    expect(Number(structuredContent?.['stdout_cut'])).toBe(588_895 - 30_000)
    expect(content[0]?.text).toMatch(/output was cut.*read_file/)
  })

  test('says how many results were dropped', { timeout: patience }, async () => {
    const { structuredContent, content } = await agent.call('run_code', { code: 'for n in range(10_003): display(n)' })
    expect(structuredContent).toMatchObject({ status: 'ok', results_dropped: 3 })
    expect(JSON.stringify(content)).toContain('note: 3 more results were dropped')
  })

  test('reads a file piece by piece, never half a character', async () => {
    await agent.call('write_file', { path: 'umlauts.txt', content: 'ä'.repeat(10) })
    const first = await agent.call('read_file', { path: 'umlauts.txt', length: 7 })
    expect(first.structuredContent).toMatchObject({ content: 'äää', next_offset: 6, size: 20, encoding: 'text' })
    const rest = await agent.call('read_file', { path: 'umlauts.txt', offset: 6 })
    expect(rest.structuredContent).toMatchObject({ content: 'ä'.repeat(7) })
    expect(rest.structuredContent).not.toHaveProperty('next_offset')
  })

  test('writes bytes, appends, and shows a picture as one', async () => {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    await agent.call('write_file', { path: 'dot.png', content: png, encoding: 'base64' })
    expect((await agent.call('read_file', { path: 'dot.png' })).content).toEqual([{ type: 'image', data: png, mimeType: 'image/png' }])
    await agent.call('write_file', { path: 'log', content: 'a' })
    expect((await agent.call('write_file', { path: 'log', content: 'b', append: true })).structuredContent).toMatchObject({ size: 2 })
    expect(await agent.call('write_file', { path: 'x', content: 'no base64!', encoding: 'base64' })).toMatchObject({
      isError: true,
      structuredContent: { failure: { code: 'invalid' } },
    })
  })

  test('says of a missing file what to do next, and of a resource that it is not there', async () => {
    const missing = await agent.call('read_file', { path: 'nowhere.txt' })
    expect(missing).toMatchObject({ isError: true, structuredContent: { failure: { code: 'not-found', next: expect.stringContaining('list_files') } } })
    await expect(agent.read('sandbox:///workspace/nowhere.txt')).rejects.toThrow(/not found/i)
  })

  test('serves calls at once, each with its own answer', { timeout: patience }, async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => agent.call('run_command', { command: `echo ${index}` })))
    expect(answers.map((answer) => answer.structuredContent?.['stdout'])).toEqual(Array.from({ length: 20 }, (_, index) => `${index}\n`))
  })

  test('tells of a time that is over, and keeps the memory', { timeout: patience }, async () => {
    await agent.call('run_code', { code: 'before = 1' })
    const over = await agent.call('run_code', { code: 'while True: pass', timeout_seconds: 0.5 })
    expect(over).toMatchObject({ isError: true, structuredContent: { status: 'timed-out', state_kept: true } })
    expect((await agent.call('run_code', { code: 'before' })).structuredContent).toMatchObject({ text: '1' })
  })

  test('an interpreter that ended is told as such, and the next call has a new one', { timeout: patience }, async () => {
    const crashed = await agent.call('run_code', { code: 'import os; os._exit(9)' })
    expect(crashed).toMatchObject({ isError: true, structuredContent: { status: 'crashed', state_kept: false, outcome: 'exit code 9' } })
    expect((await agent.call('run_code', { code: '1 + 1' })).structuredContent).toMatchObject({ text: '2' })
  })
})

describe('a call', () => {
  test.each(generations)(
    'that is called off interrupts what runs, with %s',
    async (_name, connect) => {
      const agent = await connect(fake)
      try {
        await agent.call('run_code', { code: 'n = 0' })
        const controller = new AbortController()
        const call = agent.call(
          'run_code',
          { code: 'n = 1\nprint("on", flush=True)\nwhile True: n += 1' },
          { signal: controller.signal, onprogress: () => controller.abort() },
        )
        await expect(call).rejects.toThrow()
        // The same interpreter answers, so it is free again and has its memory.
        expect((await agent.call('run_code', { code: 'n > 0' })).structuredContent).toMatchObject({ text: 'True' })
      } finally {
        await agent.close()
      }
    },
    patience,
  )

  test('tells what is printed on the way to who asks for it', { timeout: patience }, async () => {
    const agent = await modernAgent(fake, 'legacy')
    try {
      const seen: string[] = []
      await agent.call(
        'run_command',
        { command: 'echo first; sleep 0.4; echo second; sleep 0.4; echo third' },
        { onprogress: ({ message }) => seen.push(message ?? '') },
      )
      expect(seen.join('\n')).toMatch(/first[\s\S]*second/)
    } finally {
      await agent.close()
    }
  })
})

describe('the sandbox of a connection', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gbx-mcp-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  test('is made anew when it has expired, and the answer says so', { timeout: patience }, async () => {
    const policy = join(folder, 'short.json')
    writeFileSync(policy, JSON.stringify({ ceiling: { lifetime: '3s' } }))
    const agent = await firstAgent([...fake, '--policy', policy])
    try {
      await agent.call('write_file', { path: 'a.txt', content: 'a' })
      // A call that outlives the sandbox: it fails, and so says that the next one has a new sandbox.
      const cutOff = await agent.call('run_command', { command: 'sleep 60' })
      expect(cutOff).toMatchObject({ isError: true })
      const next = await agent.call('list_files', { path: '.' })
      expect(next.structuredContent).toMatchObject({ entries: [], note: expect.stringMatching(/gone.*new one/) })
      expect((await agent.call('list_files', { path: '.' })).structuredContent).not.toHaveProperty('note')
    } finally {
      await agent.close()
    }
  })

  test('is held to the flags, in a real cell: an upload, a variable, and a limit of memory where that is enforced', { timeout: patience }, async () => {
    const file = join(folder, 'in.txt')
    writeFileSync(file, 'from outside')
    const agent = await firstAgent([...(enforcesMemory ? ['--memory', '64m'] : []), '--upload', `${file}:/workspace/in.txt`, '--env', 'GREETING=hello'])
    try {
      expect((await agent.call('read_file', { path: 'in.txt' })).structuredContent).toMatchObject({ content: 'from outside' })
      expect((await agent.call('run_command', { command: 'echo "$GREETING"; id -u' })).structuredContent).toMatchObject({ stdout: 'hello\n1000\n' })
      const greedy = enforcesMemory && (await agent.call('run_code', { code: 'x = bytearray(200 << 20)' }))
      if (greedy) expect(greedy).toMatchObject({ isError: true, structuredContent: { status: 'crashed', outcome: expect.stringContaining('memory') } })
      const refused = await agent.call('write_file', { path: '/usr/bin/new', content: 'x' })
      expect(refused).toMatchObject({ isError: true, structuredContent: { failure: { code: 'denied' } } })
    } finally {
      await agent.close()
    }
  })
})
