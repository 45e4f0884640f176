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

/** Whether our own flag --json stands anywhere among ours, also behind one that is wrong; what follows COMMAND is the program's. */
export function hasJsonFlag(program: Command, args: readonly string[]): boolean {
  const { path, command } = findCalled(program, args)
  const rest = args.slice(path.length)
  const end = rest.indexOf('--')
  const ours = end === -1 ? rest : rest.slice(0, end)
  for (let at = 0; at < ours.length; at += 1) {
    const word = ours[at] ?? ''
    if (word === '--json') return true
    if (!word.startsWith('-') && takesProgram(command)) return false
    const takesValue = command.options.some((option) => (option.long === word || option.short === word) && option.required)
    if (takesValue) at += 1
  }
  return false
}

/** Whether its first operand ends our flags. */
function takesProgram(command: Command): boolean {
  return command.registeredArguments.some(({ variadic }) => variadic)
}
