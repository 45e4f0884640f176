/** Who uses the command line: whoever runs the tests, and where that is root an ordinary user too, each with places of their own. */
import { spawn } from 'node:child_process'
import { chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type CliResult, cliPath, collect } from './cli.js'

export interface Account {
  readonly name: string
  readonly uid: number
  readonly wrapper: readonly string[]
}

export const self: Account = { name: 'whoever tests', uid: process.getuid?.() ?? -1, wrapper: [] }
const ordinary: Account = { name: 'an ordinary user', uid: 65_534, wrapper: ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups'] }
export const accounts = self.uid === 0 ? [self, ordinary] : [self]

/** Folders in `top` that are this account's. */
export function makeOwn(account: Account, top: string, names: readonly string[]): void {
  for (const name of names) {
    mkdirSync(join(top, name), { mode: 0o700 })
    chownSync(join(top, name), account.uid, account.uid)
  }
}

export interface Place {
  /** Holds `home` and `changes`. */
  readonly top: string
  readonly cwd: string
}

export function gloveboxAs(account: Account, args: readonly (string | Buffer)[], { top, cwd }: Place): Promise<CliResult> {
  const env = { ...process.env, HOME: join(top, 'home'), GLOVEBOX_CHANGES_DIR: join(top, 'changes'), XDG_RUNTIME_DIR: '', NO_COLOR: '1' }
  // Arguments of any bytes come from a shell: Node hands over only text.
  const typed = args.map((argument) => (typeof argument === 'string' ? argument : `$(printf '${asOctal(argument)}')`))
  const isText = args.every((argument) => typeof argument === 'string')
  const command = [...account.wrapper, process.execPath, cliPath]
  const quoted = [...command, ...typed].map((word) => (word.startsWith('$(') ? `"${word}"` : `'${word.replaceAll("'", "'\\''")}'`))
  const [file = '', ...rest] = isText ? [...command, ...typed] : ['/bin/sh', '-c', `exec ${quoted.join(' ')}`]
  const child = spawn(file, rest, { cwd, env })
  child.stdin.end()
  return collect(child)
}

function asOctal(bytes: Buffer): string {
  return [...bytes].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}
