/** Whatever the engine says of its own begins so. */
export function wordsOf(line: string): string | undefined {
  return line.startsWith('docker:') ? line : undefined
}
