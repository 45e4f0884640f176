import type { Command } from 'commander'

export interface Called {
  /** As much of the arguments as names a command, or one below it. */
  readonly path: readonly string[]
  /** The last of them; the program itself when there is none. */
  readonly command: Command
}

export function findCalled(command: Command, [first, ...rest]: readonly string[]): Called {
  const named = command.commands.find((each) => each.name() === first)
  if (!named) return { path: [], command }
  const below = findCalled(named, rest)
  return { path: [named.name(), ...below.path], command: below.command }
}

/** A command with all below it. */
export function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)]
}

/** 'help run' as 'run --help'; a command that is not there is complained about as it would be without 'help', and one that only has others below it shows them. */
export function withoutHelpCommand(args: readonly string[], program: Command): readonly string[] {
  const [first, ...topic] = args
  const isHelp = first === 'help' && topic.length > 0
  if (isHelp && topic[0] === 'help') return ['--help']
  const wanted = isHelp ? topic : args
  const { path, command } = findCalled(program, wanted)
  const isGroup = command.commands.length > 0
  if (isGroup && path.length < wanted.length) return isHelp ? wanted.slice(0, path.length + 1) : args
  return isHelp || isGroup ? [...path, '--help'] : args
}
