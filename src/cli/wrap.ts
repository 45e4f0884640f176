const columns = 80

/** Breaks at words, and words that are longer than a line, so that a terminal of 80 columns shows no torn line; what follows is indented below the first. */
export function wrap(text: string, indent: number): string {
  const room = columns - 1 - indent
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ').flatMap((whole) => cut(whole, room))) {
    if (line !== '' && printedLength(`${line} ${word}`) > room) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].join(`\n${' '.repeat(indent)}`)
}

/** Words of ours that are coloured are short: only what is longer than a line is cut, and that is never coloured. */
function cut(word: string, most: number): string[] {
  if (printedLength(word) <= most) return [word]
  return [word.slice(0, most), ...cut(word.slice(most), most)]
}

function printedLength(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours take no room on the screen
  return text.replace(/\u001b\[\d+m/g, '').length
}
