/** Whether it is a program with its arguments as every command line has them: then its schema, which takes long to make, would have nothing to say. */
export function isPlainCommand(command: unknown): command is readonly [string, ...string[]] {
  return Array.isArray(command) && command[0] !== '' && command.length > 0 && [...command].every((part) => typeof part === 'string' && !part.includes('\0'))
}
