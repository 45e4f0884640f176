// Finds functions in Python by their indentation: from `def` to the last line that is indented deeper.

/** @param {string} text @param {number} limit @returns {import('./sizes.mjs').Problem[]} */
export function longFunctionsInPython(text, limit) {
  const lines = text.split('\n')
  return lines.flatMap((line, start) => {
    const [, indent, name] = line.match(/^(\s*)(?:async\s+)?def\s+(\w+)/) ?? []
    if (indent === undefined) return []
    let last = start
    for (let index = start + 1; index < lines.length; index++) {
      const text = lines[index] ?? ''
      if (text.trim() === '') continue
      if (text.search(/\S/) <= indent.length && !/^\s*\)/.test(text)) break
      last = index
    }
    const length = last - start + 1
    return length > limit ? [{ line: start + 1, text: `${name} has ${length} lines, and ${limit} are the limit` }] : []
  })
}
