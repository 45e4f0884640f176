import { readFileSync } from 'node:fs'
import { SandboxError } from '../contract/errors.js'
import { pathText } from '../contract/path-text.js'

const replacement = '\ufffd'
const mostShown = 60

/** The arguments of a command that takes paths of any bytes, as text that holds them. */
export function exactArguments(args: readonly string[]): readonly string[] {
  if (!isChanged(args)) return args
  return typedArguments(args.length).map((bytes, index) => (args[index]?.includes(replacement) ? pathText(bytes) : (args[index] ?? '')))
}

function isChanged(args: readonly string[]): boolean {
  return process.platform === 'linux' && args.some((argument) => argument.includes(replacement))
}

/** Node decodes arguments as UTF-8 and replaces what is not. A program must not get other bytes than were typed, so such an argument is refused. */
export function refuseChangedArguments(args: readonly string[]): void {
  if (!isChanged(args)) return
  const typed = typedArguments(args.length)
  for (const [index, argument] of args.entries()) {
    const bytes = typed[index]
    if (bytes === undefined || bytes.equals(Buffer.from(argument))) continue
    throw new SandboxError('invalid', `argument ${index + 1} is not valid UTF-8 and would not arrive as it is: '${inAscii(bytes)}'`, {
      hint: 'hand the bytes over as stdin',
    })
  }
}

/** The last `count` arguments as the kernel has them; Node's own stand before. */
function typedArguments(count: number): Buffer[] {
  const line = readFileSync('/proc/self/cmdline')
  const parts: Buffer[] = []
  for (let at = 0; at < line.length; ) {
    const end = line.indexOf(0, at)
    parts.push(line.subarray(at, end === -1 ? line.length : end))
    at = end === -1 ? line.length : end + 1
  }
  return parts.slice(-count)
}

/** printf's notation: what is typed again with it gives the same bytes. */
function inAscii(bytes: Buffer): string {
  const text = [...bytes].map((byte) => (byte < 0x80 ? String.fromCharCode(byte) : `\\x${byte.toString(16)}`)).join('')
  return text.length > mostShown ? `${text.slice(0, mostShown)}…` : text
}
