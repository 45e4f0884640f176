import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Probe } from '../../src/contract/driver.js'
import type { SpecInput } from '../../src/contract/spec.js'
import type { AsideProcess } from '../../src/engine/aside-process.js'
import { Engine } from '../../src/engine/engine.js'
import { rejectionOf } from './collect.js'
import { waitUntil } from './processes.js'

let engine: Engine
let probe: Probe

beforeAll(async () => {
  const platform = createPlatform()
  if (!(platform instanceof Engine)) throw new Error('the platform is no engine')
  engine = platform
  const found = (await platform.probe()).find(({ driver }) => driver === 'bwrap')
  if (!found?.available) throw new Error(`bwrap is not available here: ${JSON.stringify(found?.obstacles)}`)
  probe = found
})
afterAll(() => engine[Symbol.asyncDispose]())

async function inSandbox(spec: SpecInput, act: (id: string) => Promise<void>): Promise<void> {
  const { id } = await engine.create(spec)
  try {
    await act(id)
  } finally {
    await engine.close(id)
  }
}

interface Said {
  stdout: string
  stderr: string
  aside: string
}

/** Reads all three streams; what was read so far is there at any time. */
function listen({ output, aside }: AsideProcess): { readonly said: Said; readonly over: Promise<unknown> } {
  const said: Said = { stdout: '', stderr: '', aside: '' }
  const printed = async (): Promise<void> => {
    for await (const { type, bytes } of output) said[type] += Buffer.from(bytes).toString()
  }
  const told = async (): Promise<void> => {
    for await (const bytes of aside) said.aside += Buffer.from(bytes).toString()
  }
  return { said, over: Promise.all([printed(), told()]) }
}

const python = (source: string): { readonly command: string[] } => ({ command: ['/usr/bin/python3', '-c', `import os, sys\n${source}`] })
const bytes = (text: string): Buffer => Buffer.from(text)

const openOnes = `
def there(fd):
    try: os.fstat(fd); return True
    except OSError: return False
print([fd for fd in range(1024) if there(fd)], os.readlink("/proc/self/fd/0"))`

describe('a program with an aside', () => {
  test('hears on 3 and answers on 4, beside what it prints, and ends as any other', async () => {
    await inSandbox({}, async (id) => {
      const program = await engine.startAside(
        id,
        python('asked = os.read(3, 100)\nprint("out")\nprint("err", file=sys.stderr)\nos.write(4, asked.upper())\nsys.exit(5)'),
      )
      const { said, over } = listen(program)
      expect(program.pid).toBeGreaterThan(1)
      await program.write(bytes('what?'))
      await over
      const { outcome, usage } = await program.ended
      expect(said).toEqual({ stdout: 'out\n', stderr: 'err\n', aside: 'WHAT?' })
      expect([outcome, usage.outputBytes]).toEqual([{ kind: 'exited', code: 5 }, 8])
      expect(await rejectionOf(program.write(bytes('more')))).toMatchObject({ code: 'conflict' })
    })
  })

  test.for(['user', 'root'] as const)('has 0 to 4 open and nothing else, as %s, the first of its kind and the next', async (user, { skip }) => {
    const told = probe.users[user]
    if (!told.available) skip(told.why)
    await inSandbox({}, async (id) => {
      for (let each = 0; each < 3; each += 1) {
        const { said, over } = listen(await engine.startAside(id, { ...python(openOnes), user }))
        await over
        expect(said.stdout).toBe('[0, 1, 2, 3, 4] /dev/null\n')
      }
    })
  })
})
