import type { AsideProcess } from '../../src/engine/aside-process.js'

export interface Said {
  stdout: string
  stderr: string
  aside: string
}

/** Reads all three streams; what was read so far is there at any time. */
export function listen({ output, aside }: AsideProcess): { readonly said: Said; readonly over: Promise<unknown> } {
  const said: Said = { stdout: '', stderr: '', aside: '' }
  const printed = async (): Promise<void> => {
    for await (const { type, bytes } of output) said[type] += Buffer.from(bytes).toString()
  }
  const told = async (): Promise<void> => {
    for await (const bytes of aside) said.aside += Buffer.from(bytes).toString()
  }
  const over = Promise.all([printed(), told()])
  over.catch(() => undefined)
  return { said, over }
}
