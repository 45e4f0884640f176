import { expect, it } from 'vitest'
import { openWarden } from './native-warden.js'
import { running, settle } from './scripted-warden.js'

const terminal = { cols: 80, rows: 24 }

it('a person at a terminal types, is answered, resizes it and leaves', async () => {
  await using native = await openWarden()
  const run = await native.start(['sh'], { terminal, stdin: true, env: { PATH: '/usr/bin:/bin', PS1: '', TERM: 'dumb' } })
  const iterator = run.output[Symbol.asyncIterator]()
  let seen = ''
  const read = async (pattern: RegExp): Promise<void> => {
    while (!pattern.test(seen)) {
      const { done, value } = await iterator.next()
      if (done) throw new Error(`it ended after ${JSON.stringify(seen)}`)
      expect(value.type).toBe('stdout')
      seen += Buffer.from(value.bytes).toString()
    }
    seen = ''
  }
  await run.write(Buffer.from('stty size\n'))
  await read(/24 80\r\n/)
  run.resize({ cols: 132, rows: 50 })
  await run.write(Buffer.from('stty size\n'))
  await read(/50 132\r\n/)
  await run.endInput()
  run.discardOutput()
  expect(await run.exited).toMatchObject({ kind: 'exited', code: 0 })
  run.resize(terminal)
})

it('RESIZE carries rows and columns, only while the program runs', async () => {
  const { peer, process } = await running({ terminal })
  process.resize({ cols: 4096, rows: 1 })
  const { payload } = await peer.hear('resize')
  expect([payload.readUInt16LE(0), payload.readUInt16LE(2)]).toEqual([1, 4096])
  peer.endOutput(1)
  peer.exited(1)
  await process.exited
  process.resize(terminal)
  await settle()
  expect(peer.heard('resize')).toEqual([])
})

it.each([
  { cols: 0, rows: 1 },
  { cols: 1, rows: 4097 },
  { cols: 1.5, rows: 1 },
])('a size of %o is refused before anything is sent', async (size) => {
  const { peer, process } = await running({ terminal })
  expect(() => process.resize(size)).toThrow(expect.objectContaining({ code: 'invalid' }))
  await settle()
  expect(peer.heard('resize')).toEqual([])
})

it('a run without a terminal has no size', async () => {
  const { process } = await running()
  expect(() => process.resize(terminal)).toThrow(expect.objectContaining({ code: 'conflict' }))
})
