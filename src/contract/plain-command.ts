/** Whether it is a program with its arguments as every command line has them: then its schema, which takes long to make, would have nothing to say. */
export function isPlainCommand(command: unknown): command is readonly [string, ...string[]] {
  if (!Array.isArray(command)) return false
  // What an array lacks in between is undefined for this, and nothing for `every`.
  const parts: readonly unknown[] = Array.from<unknown>(command)
  return parts[0] !== '' && parts.length > 0 && parts.every((part) => typeof part === 'string' && !part.includes('\0'))
}
