/** What else is done with a sandbox: files, pauses, snapshots, forks, code, ports, the way out; and those that need none of their own. Each resolves to the end that it found. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from './accounts.mjs'

async function keepsFiles({ sandbox, random }) {
  const { files } = sandbox
  const folder = `f${random.below(1e9)}`
  const bytes = random.bytes(random.between(0, 300_000))
  await files.write(`${folder}/a`, bytes)
  expect(Buffer.compare(await files.readBytes(`${folder}/a`), bytes) === 0, 'what is written is read')
  await files.append(`${folder}/a`, 'needle\n')
  await files.copy(`${folder}/a`, `${folder}/b`)
  await files.move(`${folder}/b`, `${folder}/c`)
  await files.symlink('c', `${folder}/d`)
  const names = (await files.list(folder)).map(({ name }) => name).sort()
  expect(names.join() === 'a,c,d', 'the folder has what was put there', names)
  if (random.chance(0.5)) await files.search(folder, 'needle')
  if (random.chance(0.3)) {
    const packed = await new Response(await files.pack(folder)).arrayBuffer()
    await files.unpack(`${folder}/e`, new Uint8Array(packed))
  }
  expect(await files.remove(folder, { recursive: true }), 'the folder is removed')
  return 'kept'
}

async function readerOfFileLeaves({ sandbox, random }) {
  await sandbox.files.write('large', new Uint8Array(2_000_000))
  const reader = (await sandbox.files.stream('large')).getReader()
  await reader.read()
  await (random.chance(0.5) ? reader.cancel() : (await reader.read(), reader.cancel(new Error('left'))))
  return 'left'
}

async function watchesFiles({ sandbox }) {
  const watch = sandbox.files.watch('.')
  const changes = watch[Symbol.asyncIterator]()
  const next = changes.next()
  // The watch may begin after the first writes, so it is written until something is told.
  let isSeen = false
  const seen = next.then((change) => {
    isSeen = true
    return change
  })
  for (let n = 0; !isSeen && n < 200; n += 1) await Promise.race([seen, sandbox.files.write('watched', `${n}`)])
  const { value } = await seen
  expect(value !== undefined, 'a change is told', value)
  await changes.return?.()
  return 'told'
}

async function pauses({ sandbox, random }) {
  const memory = random.chance(0.7)
  const process = await sandbox.spawn(['sleep', '60'])
  await sandbox.pause({ memory })
  const refused = await sandbox.run(['true']).then(
    () => undefined,
    (error) => error.code,
  )
  expect(refused === 'conflict', 'nothing is started while it stands still', refused)
  await sandbox.resume()
  if (memory) await process.kill()
  const kind = await process.wait().then(
    ({ outcome }) => outcome.kind,
    (error) => error.code,
  )
  expect(kind === 'killed', 'what ran before is ended', kind)
  const { outcome } = await sandbox.run(['true'])
  expect(outcome.kind === 'exited', 'it goes on', outcome)
  return memory ? 'resumed' : 'made again'
}

async function snapshots({ sandbox, random, create, snapshotOf }) {
  const word = `s${random.below(1e9)}`
  await sandbox.files.write('word', word)
  const { id } = await sandbox.snapshot()
  try {
    const other = await create({ from: id })
    const found = await other.files.read('word')
    await other.close()
    expect(found === word, 'the other begins with its files', found)
  } finally {
    await snapshotOf().remove(id)
  }
  return 'begun from'
}

async function forks({ sandbox, random }) {
  await sandbox.files.write('word', 'forked')
  const others = await sandbox.fork(random.between(1, 2))
  try {
    for (const other of others) expect((await other.run(['cat', 'word'])).stdout === 'forked', 'a fork has its files')
    if (random.chance(0.5)) await sandbox.diff()
  } finally {
    await Promise.all(others.map((other) => other.close()))
  }
  return 'forked'
}

async function runsCode({ sandbox, random }) {
  const n = random.below(1e6)
  const first = await sandbox.code(`x = ${n}`)
  expect(first.status === 'ok', 'code runs', first.error)
  const kind = random.below(6)
  if (kind === 0) {
    const { status } = await sandbox.code('while True: pass', { timeout: 200 })
    expect(status === 'timed-out', 'code that takes too long is ended', status)
    return status
  }
  if (kind === 1) {
    const { status } = await sandbox.code('import os; os._exit(3)')
    expect(['crashed', 'exit'].includes(status), 'an interpreter that ends is told', status)
    return status
  }
  if (kind === 2) {
    const { status, error } = await sandbox.code('1 / 0')
    expect(status === 'error' && error.name === 'ZeroDivisionError', 'an error is told', status)
    return status
  }
  const { text, status } = await sandbox.code('x + 1')
  expect(status === 'ok' && text === `${n + 1}`, 'the context keeps its memory', { status, text })
  if (kind === 3) await sandbox.contexts.restart((await sandbox.contexts.list())[0].id)
  return status
}

const otherLanguages = [
  ['bash', 'echo $((40 + 2))'],
  ['javascript', 'console.log(40 + 2)'],
]

async function runsOtherCode({ sandbox, random }) {
  const [language, source] = random.pick(otherLanguages)
  const { id } = await sandbox.contexts.create({ language })
  const { stdout, status } = await sandbox.code(source, { context: id })
  expect(status === 'ok' && stdout === '42\n', `${language} runs`, { status, stdout })
  await sandbox.contexts.remove(id)
  return status
}

const server = `
import socket
s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept(); c.sendall(c.recv(100)); c.close()
`

async function isForwarded({ sandbox, random }) {
  const process = await sandbox.spawn(['python3', '-c', server])
  const reader = process.stdout.getReader()
  const port = Number(new TextDecoder().decode((await reader.read()).value))
  await reader.cancel()
  const forward = await sandbox.forward(port)
  const socket = connect({ host: '127.0.0.1', port: forward.port })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  if (random.chance(0.6)) {
    socket.write('hello')
    const [answer] = await once(socket, 'data')
    expect(`${answer}` === 'hello', 'what goes through a port comes back', `${answer}`)
  }
  socket.destroy()
  await forward.close()
  await process.kill()
  return 'carried'
}

const askPage = `
import sys, urllib.request, urllib.error
try:
    r = urllib.request.urlopen(sys.argv[1], timeout=20)
    print(r.status, len(r.read(int(sys.argv[2]))))
except urllib.error.HTTPError as error:
    print(error.code)
`

async function goesOut({ sandbox, random, egress }) {
  const length = random.pick([0, 10, 5000, 400_000])
  const taken = random.chance(0.3) ? 1 : 1_000_000
  const { stdout, stderr } = await sandbox.run(['python3', '-c', askPage, `${egress.allowed}/${length}`, `${taken}`])
  expect(stdout === `200 ${Math.min(length, taken)}\n`, `${length} bytes are had from where it may go`, { stdout, stderr })
  return taken < length ? 'left' : 'carried'
}

async function isDenied({ sandbox, egress }) {
  const { stdout, stderr } = await sandbox.run(['python3', '-c', askPage, `${egress.denied}/1`, '1'])
  expect(stdout === '403\n', 'where it may not go is refused', { stdout, stderr })
  return 'denied'
}

async function isLookedAt({ sandbox }) {
  const [receipt, usage, info] = await Promise.all([sandbox.receipt(), sandbox.usage(), sandbox.info()])
  expect(info.state === 'running' && usage.runs >= 0 && typeof receipt === 'object', 'it can be looked at', info.state)
  return 'told'
}

export const lifeActs = [
  { name: 'keeps files', weight: 6, act: keepsFiles },
  { name: 'reader of a file leaves', weight: 3, act: readerOfFileLeaves },
  { name: 'watches files', weight: 2, act: watchesFiles },
  { name: 'pauses', weight: 3, act: pauses },
  { name: 'snapshots', weight: 2, act: snapshots },
  { name: 'forks', weight: 2, act: forks },
  { name: 'runs code', weight: 4, act: runsCode },
  { name: 'runs other code', weight: 1, act: runsOtherCode },
  { name: 'is forwarded', weight: 2, act: isForwarded },
  { name: 'goes out', weight: 4, act: goesOut },
  { name: 'is denied', weight: 2, act: isDenied },
  { name: 'is looked at', weight: 2, act: isLookedAt },
]
