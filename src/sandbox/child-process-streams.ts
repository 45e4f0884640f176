import type { Readable, Writable } from 'node:stream'
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'
import type { OutputEvent } from '../contract/run.js'
import type { Written } from './child-process.js'

export interface StreamModule {
  readonly Readable: typeof Readable
  readonly Writable: typeof Writable
}

/** One stream of a program as a Readable of Node's. */
export function readableOf(program: PlatformProcess, { type, stream }: Pick<OutputEvent, 'type'> & { readonly stream: StreamModule }): Readable {
  let events: AsyncIterator<OutputEvent, undefined> | undefined
  const next = async (): Promise<Uint8Array | null> => {
    events ??= program.output[Symbol.asyncIterator]() as AsyncIterator<OutputEvent, undefined>
    for (;;) {
      const { done, value } = await events.next()
      if (done === true) return null
      if (value.type === type && value.bytes.length > 0) return value.bytes
    }
  }
  return new stream.Readable({
    read() {
      next().then(
        (bytes) => this.push(bytes),
        // A program that went with its sandbox is told as one that was killed, whose streams end.
        () => this.push(null),
      )
    },
    destroy(error, done) {
      void events?.return?.()
      done(error)
    },
  })
}

/** The input of a program as a Writable of Node's: EPIPE when the program has ended, and closed without a word when its sandbox has. */
export function writableOf(input: Written, { Writable }: StreamModule): Writable {
  const stream = new Writable({
    write: (chunk: Uint8Array, _, done) => settle(input.write(chunk), done),
    final: (done) => settle(input.end(), done),
  })
  const settle = (act: Promise<void>, done: (error?: Error | null) => void): void => {
    act.then(
      () => done(),
      (error: unknown) => {
        const isOver = error instanceof SandboxError && error.code === 'conflict'
        // An error that nobody listens for would end the whole program, for what `exit` tells.
        if (!isOver) stream.destroy()
        done(isOver ? brokenPipe() : (error as Error))
      },
    )
  }
  return stream
}

function brokenPipe(): Error {
  return Object.assign(new Error('write EPIPE'), { code: 'EPIPE', errno: -32, syscall: 'write' })
}
