/** Brings file workers to the limits of a walled sandbox, and prints what is told. As whoever starts it. */
import { createPlatform } from '../../../src/compose.js'
import { SandboxError } from '../../../src/contract/errors.js'
import { Sandbox } from '../../../src/sandbox/index.js'
import type { SpecInput } from '../../../src/contract/spec.js'

const platform = createPlatform()

function wordsOf(error: unknown): string {
  return error instanceof SandboxError ? `${error.code}: ${error.message}` : String(error)
}

async function told(act: Promise<unknown>): Promise<string> {
  try {
    return `done ${JSON.stringify(await act)}`
  } catch (error) {
    return wordsOf(error)
  }
}

async function withSandbox(spec: SpecInput, use: (sandbox: Sandbox) => Promise<string>): Promise<string> {
  try {
    const sandbox = await Sandbox.create({ platform, ...spec })
    const result = await use(sandbox)
    await sandbox.close()
    return result
  } catch (error) {
    return error instanceof SandboxError ? `none: ${error.code}` : String(error)
  }
}

async function* zeros(pieces: number): AsyncGenerator<Uint8Array, void, undefined> {
  for (let count = 0; count < pieces; count += 1) yield await Promise.resolve(new Uint8Array(2 ** 20))
}

/** Takes every place there is, and says so. */
const fill = `import os, time
try:
    while True:
        if os.fork() == 0: time.sleep(100)
except OSError: print('full', flush=True)
time.sleep(100)`

const results = {
  fileSize: await withSandbox({ limits: { fileSize: '1m' } }, async ({ files }) => {
    const first = await told(files.write('a', zeros(4)))
    return `${first} | ${await told(files.write('b', 'b').then(({ size }) => size))}`
  }),
  processes: await withSandbox({ limits: { processes: 8 } }, async (sandbox) => {
    const child = await sandbox.spawn(['python3', '-c', fill])
    await child.stdout.getReader().read()
    // What the warden needs for itself has places of its own, so the first few still find one.
    const watches = Array.from({ length: 30 }, () => sandbox.files.watch('.'))
    const told = await Promise.all(
      watches.map((watch) =>
        watch.ready.then(
          () => 'watches',
          (error: unknown) => wordsOf(error),
        ),
      ),
    )
    return [...new Set(told)].sort().join(' | ')
  }),
  memory: await withSandbox({ limits: { memory: '32m', disk: '1g' } }, async (sandbox) => {
    const first = await told(sandbox.files.write('a', zeros(200)))
    return `${first} | ${await told(sandbox.files.remove('a'))}`
  }),
  kinds: await withSandbox({}, async (sandbox) => {
    await sandbox.run(['python3', '-c', 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'])
    return told(sandbox.files.read('sock'))
  }),
  growing: await withSandbox({}, async (sandbox) => {
    await sandbox.spawn('while :; do echo 0123456789 >> log; done')
    await sandbox.run('while [ ! -s log ]; do sleep 0.05; done')
    const text = await sandbox.files.read('log', { length: 1_000_000 })
    return /^(0123456789\n)*[0-9]*$/.test(text) && text.length > 0 ? 'whole lines' : 'broken'
  }),
  round: await withSandbox({}, async ({ files }) => {
    await files.write('d/a', 'text', { atomic: true })
    await files.copy('d', 'e')
    await files.move('e/a', '/tmp/b')
    return `${await files.read('/tmp/b')} ${(await files.stat('d/a'))?.owner} ${(await files.list('.')).map(({ name }) => name).join()}`
  }),
}
console.log(JSON.stringify(results))
await platform[Symbol.asyncDispose]()
