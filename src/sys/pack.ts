import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { SandboxError } from '../contract/errors.js'

/** What `tar` writes when it is called with these arguments, as it comes. Throws when it ends otherwise than well. */
export async function* packed(argv: readonly string[]): AsyncGenerator<Buffer> {
  const child = spawn('tar', argv, { cwd: '/', env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' }, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'close') as Promise<[number | null]>
  const words = text(child.stderr)
  // Both are heard when they matter, which may be after they failed.
  ended.catch(() => undefined)
  try {
    yield* child.stdout as AsyncIterable<Buffer>
    const [code] = await ended
    if (code !== 0) throw new SandboxError('broken', `the folders of a template cannot be packed: ${(await words).trim().split('\n').at(-1)}`)
  } finally {
    if (child.exitCode === null) child.kill('SIGKILL')
  }
}
