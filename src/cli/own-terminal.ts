/** The terminal that we are at, handed to a program in a sandbox and taken back whatever happens. */
import { spawnSync } from 'node:child_process'
import { SandboxError } from '../contract/errors.js'
import type { TerminalSize } from '../contract/run.js'

/** Colours, cursor, mouse and pasting as they were: a program that was ended could not put them back. */
const plainScreen = '\x1b[0m\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l'
const mostCharacters = 4096

export interface OwnTerminal {
  readonly size: TerminalSize
  /** From now on every key is the program's, Ctrl-C too; `onResize` is called when the window changes. */
  hand(onResize: (size: TerminalSize) => void): void
  /** Takes it back as it was. Idempotent. */
  takeBack(options?: { readonly isOrderly: boolean }): void
}

/** Throws SandboxError('invalid') unless both our stdin and our stdout are terminals. */
export function openOwnTerminal(): OwnTerminal {
  const { stdin, stdout } = process
  for (const [name, stream] of Object.entries({ stdin, stdout })) {
    if (!stream.isTTY) throw new SandboxError('invalid', `${name} is no terminal, and a shell without one is a run`, { hint: 'glovebox run -- sh -c …' })
  }
  let onResize: ((size: TerminalSize) => void) | undefined
  const told = (): void => onResize?.(sizeOf(stdout))
  // Whoever stopped us has changed the terminal meanwhile.
  const onContinue = (): void => {
    stdin.setRawMode(false)
    makeRaw(stdin)
    told()
  }
  const takeBack = ({ isOrderly } = { isOrderly: false }): void => {
    if (onResize === undefined) return
    onResize = undefined
    process.off('exit', onExit)
    process.off('SIGCONT', onContinue)
    stdout.off('resize', told)
    stdin.setRawMode(false)
    if (!isOrderly) stdout.write(plainScreen)
  }
  const onExit = (): void => takeBack()
  return {
    get size() {
      return sizeOf(stdout)
    },
    hand(listener) {
      onResize = listener
      // A window that was closed cannot be put back, which is no reason to leave the rest undone.
      stdin.on('error', () => undefined)
      process.on('exit', onExit)
      process.on('SIGCONT', onContinue)
      stdout.on('resize', told)
      makeRaw(stdin)
      // It may have changed since the program was started with the size it had.
      told()
    },
    takeBack,
  }
}

/**
 * Node's own raw mode still begins a new line at the left, where a program that draws goes straight down; it is what puts all of it back, however we end.
 * Where there is no stty it has to do.
 */
function makeRaw(stdin: NodeJS.ReadStream): void {
  stdin.setRawMode(true)
  spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] })
}

/** Some terminals do not know how large they are. */
function sizeOf({ columns, rows }: { readonly columns: number; readonly rows: number }): TerminalSize {
  const within = (value: number, otherwise: number): number => (value > 0 ? Math.min(value, mostCharacters) : otherwise)
  return { cols: within(columns, 80), rows: within(rows, 24) }
}
