import { SandboxError } from '../contract/errors.js'
import { printable } from './refusal.js'

/** The kernel takes no longer string: MAX_ARG_STRLEN less its terminator. */
const maxStringBytes = 131_071
const maxStrings = 4096
const maxArgvBytes = 2 * 2 ** 20
const maxEnvBytes = 2 ** 20

const encoder = new TextEncoder()

function byteLength(text: string): number {
  return encoder.encode(text).length
}

/** Throws SandboxError('invalid') when no kernel would start a program with these arguments. */
export function checkCommand(command: string | readonly string[]): void {
  if (typeof command === 'string') {
    checkString('command', command, 'write it to a file in the sandbox, or give it to the shell as stdin')
    return
  }
  if (command.length > maxStrings) throw new SandboxError('invalid', `command: has ${command.length} arguments; at most ${maxStrings} are possible`)
  let total = 0
  for (const [index, argument] of command.entries()) total += checkString(`command[${index}]`, argument, 'hand it over as stdin or in a file')
  if (total > maxArgvBytes) throw new SandboxError('invalid', `command: has ${total} bytes of arguments; at most ${maxArgvBytes} are possible`)
}

export function checkEnv(env: Readonly<Record<string, string>>): void {
  const variables = Object.entries(env)
  if (variables.length > maxStrings) throw new SandboxError('invalid', `env: has ${variables.length} variables; at most ${maxStrings} are possible`)
  let total = 0
  for (const [name, value] of variables) total += checkString(`env.${printable(name)}`, `${name}=${value}`, 'hand it over as stdin or in a file')
  if (total > maxEnvBytes) throw new SandboxError('invalid', `env: has ${total} bytes together; at most ${maxEnvBytes} are possible`)
}

function checkString(field: string, text: string, hint: string): number {
  const bytes = byteLength(text)
  if (bytes > maxStringBytes) throw new SandboxError('invalid', `${field}: has ${bytes} bytes; at most ${maxStringBytes} are possible`, { hint })
  if (/\p{Surrogate}/u.test(text)) throw new SandboxError('invalid', `${field}: contains half of a surrogate pair, which has no bytes`)
  return bytes
}
