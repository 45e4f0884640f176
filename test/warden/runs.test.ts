import { expect, test } from 'vitest'
import { Peer, TYPE, u32 } from './frames.js'

test('HELLO names the version and the window', async () => {
  await using peer = new Peer()
  expect((await peer.takeType(TYPE.HELLO)).payload).toEqual(u32(1, 262144))
})

test('a program is started, heard and its exit code told', async () => {
  await using peer = new Peer()
  const said = await peer.run(1, { argv: ['sh', '-c', 'echo out; echo err >&2; exit 7'] })
  expect(said.stdout.toString()).toBe('out\n')
  expect(said.stderr.toString()).toBe('err\n')
  expect({ kind: said.ending.kind, code: said.ending.code }).toEqual({ kind: 0, code: 7 })
})

test('a killed program with its double-forked descendants is gone', async () => {
  await using peer = new Peer()
  peer.start(1, { argv: ['sh', '-c', '(setsid sh -c "sleep 987 & sleep 987" &) ; echo ready; sleep 987'] })
  await peer.take((frame) => frame.type === TYPE.OUTPUT)
  peer.send({ type: TYPE.KILL, run: 1 })
  await peer.takeType(TYPE.GONE, 1)
  expect((await peer.collect(1)).ending).toMatchObject({ kind: 1, code: 9 })
})
