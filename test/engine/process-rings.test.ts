import { afterEach, expect, test } from 'vitest'
import type { PlatformProcess } from '../../src/contract/platform.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'

const engine = createPlainEngine(new PlainDriver(), { bounds: { maxRingBytes: 6000 } })
afterEach(() => engine.closeAll())

interface Held {
  readonly held: number
  readonly dropped: number
}

/** What a reader that comes late still finds, up to the end that was printed. */
async function heldOf(id: string, { pid }: PlatformProcess): Promise<Held> {
  let [held, dropped] = [0, 0]
  const view = await engine.processes.attach(id, pid, { replay: true })
  for await (const event of view.output) {
    held += event.bytes.length
    dropped += event.dropped ?? 0
    if (held + dropped >= 5000) break
  }
  return { held, dropped }
}

const flood = 'head -c 4999 /dev/zero; printf !; read line'

async function printed(program: PlatformProcess): Promise<void> {
  for await (const { bytes } of program.output) if (bytes.at(-1) === 0x21) return
}

test('the output of all processes of a sandbox is kept within one bound, in equal parts, and what goes is counted', async () => {
  const { id } = await engine.create({ ring: 4000 })
  const start = async (command: string): Promise<PlatformProcess> => {
    const program = await engine.start(id, { command, background: true, stdin: true })
    await printed(program)
    return program
  }
  const first = await start(flood)
  expect(await heldOf(id, first)).toEqual({ held: 4000, dropped: 1000 })
  const second = await start(flood)
  expect([await heldOf(id, first), await heldOf(id, second)]).toEqual([
    { held: 3000, dropped: 2000 },
    { held: 3000, dropped: 2000 },
  ])
  // One that prints little takes its part all the same, and nobody else takes anything of it.
  const quiet = await start('printf !; read line')
  expect(await heldOf(id, first)).toEqual({ held: 2000, dropped: 3000 })
  await quiet.kill()
  await quiet.ended
  const third = await start(flood)
  expect(await heldOf(id, third)).toEqual({ held: 2000, dropped: 3000 })
})

test('one that is alone again keeps as much as it may', async () => {
  const { id } = await engine.create({ ring: 4000 })
  const other = await engine.start(id, { command: 'read line', background: true, stdin: true })
  const program = await engine.start(id, { command: `read line; ${flood}`, background: true, stdin: true })
  await other.kill()
  await other.ended
  await program.write(Buffer.from('\n'))
  await printed(program)
  expect(await heldOf(id, program)).toEqual({ held: 4000, dropped: 1000 })
})
