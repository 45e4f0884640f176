/** Lines that code asks for with input(): from whoever sits at the terminal, or from what is piped to us. */
import { createInterface, type Interface } from 'node:readline'
import { Writable } from 'node:stream'
import { openInput } from './input.js'
import { writeOut } from './streams.js'

export interface Question {
  readonly prompt: string
  readonly isSecret: boolean
}

export interface Answers {
  /** A line, or null when there are no more. */
  next(question: Question): Promise<string | null>
  close(): void
}

/** Undefined when there is nothing to ask. */
export function openAnswers(): Answers | undefined {
  if (process.stdin.isTTY) return new TerminalAnswers()
  const input = openInput()
  return input && new PipedAnswers(input)
}

class PipedAnswers implements Answers {
  readonly #input: NonNullable<ReturnType<typeof openInput>>
  #lines: AsyncIterator<string, undefined> | undefined

  constructor(input: NonNullable<ReturnType<typeof openInput>>) {
    this.#input = input
  }

  async next({ prompt }: Question): Promise<string | null> {
    await writeOut(prompt)
    this.#lines ??= linesOf(this.#input.chunks)
    const next = await this.#lines.next()
    return next.done ? null : next.value
  }

  close(): void {
    this.#input.close()
  }
}

async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield line.replace(/\r$/, '')
  }
  if (rest !== '') yield rest
  return undefined
}

class TerminalAnswers implements Answers {
  #open: Interface | undefined

  async next({ prompt, isSecret }: Question): Promise<string | null> {
    await writeOut(prompt)
    // What is typed secretly is shown nowhere.
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
    const reader = createInterface({ input: process.stdin, ...(isSecret && { output: nowhere, terminal: true }) })
    this.#open = reader
    try {
      return await new Promise((resolve) => {
        reader.once('line', resolve)
        reader.once('close', () => resolve(null))
        reader.once('SIGINT', () => {
          process.kill(process.pid, 'SIGINT')
          reader.close()
        })
      })
    } finally {
      this.close()
      if (isSecret) await writeOut('\n')
    }
  }

  close(): void {
    this.#open?.close()
    this.#open = undefined
    process.stdin.pause()
  }
}
