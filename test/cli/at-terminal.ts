import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { cliPath } from './cli.js'

const driver = fileURLToPath(new URL('./at-terminal.py', import.meta.url))

export type Step = readonly ['expect' | 'send', string] | readonly ['resize', number, number] | readonly ['signal', number] | readonly ['close']

export interface Seen {
  readonly text: string
  readonly code: number
  readonly restored: boolean
  readonly failure: string | null
}

/** The real program at a real terminal of 24 by 80. */
export async function commandAtTerminal(args: readonly string[], steps: readonly Step[], env: Readonly<Record<string, string>> = {}): Promise<Seen> {
  const child = spawn('/usr/bin/python3', [driver, process.execPath, cliPath, ...args], { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, ...env } })
  child.stdin.end(JSON.stringify(steps))
  let printed = ''
  child.stdout.on('data', (bytes: Buffer) => {
    printed += bytes.toString()
  })
  await once(child, 'close')
  return JSON.parse(printed) as Seen
}
