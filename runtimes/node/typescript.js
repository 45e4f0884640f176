// TypeScript to JavaScript, by a stripper that comes in a further `load` frame. Types become blanks, so that every place stays where it was;
// what needs code of its own (enums, namespaces, parameter properties) is transformed, and places are told by its source map.

const kept = (line, column) => ({ line, column })

/** @param {{ transformSync: (source: string, options: object) => { code: string, map?: string } }} stripper */
export function stripTypes(stripper, source) {
  try {
    return { code: stripper.transformSync(source, { mode: 'strip-only', module: true }).code, placeOf: kept, isGenerated: false }
  } catch (error) {
    if (error?.code !== 'UnsupportedSyntax') throw syntaxErrorOf(error)
  }
  try {
    const transform = { verbatimModuleSyntax: true, noEmptyExport: true, tsEnumIsMutable: true, importExportAssignConfig: 'EsNext' }
    const { code, map } = stripper.transformSync(source, { mode: 'transform', module: true, sourceMap: true, transform })
    return { code, placeOf: placesIn(JSON.parse(map).mappings), isGenerated: true }
  } catch (error) {
    throw syntaxErrorOf(error)
  }
}

function syntaxErrorOf(error) {
  if (typeof error?.startLine !== 'number') return new SyntaxError(String(error?.message ?? error).slice(0, 1000))
  return Object.assign(new SyntaxError(error.message), { loc: { line: error.startLine, column: error.startColumn } })
}

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** @returns {number[]} the numbers of one segment of a source map */
function numbersIn(segment) {
  const numbers = []
  let value = 0
  let shift = 0
  for (const character of segment) {
    const digit = digits.indexOf(character)
    value += (digit & 31) * 2 ** shift
    shift += 5
    if (digit & 32) continue
    numbers.push(value % 2 === 1 ? -Math.floor(value / 2) : value / 2)
    value = 0
    shift = 0
  }
  return numbers
}

/** Where a place of generated code was, by the nearest segment before it. @param {string} mappings */
function placesIn(mappings) {
  let [line, column] = [0, 0]
  const lines = mappings.split(';').map((text) => {
    let generated = 0
    return text
      .split(',')
      .map(numbersIn)
      .filter((numbers) => numbers.length > 0)
      .map(([step, , lines = 0, columns = 0]) => {
        generated += step
        line += lines
        column += columns
        return { generated, line: line + 1, column: column + 1 }
      })
  })
  return (atLine, atColumn) => {
    const segments = lines[atLine - 1] ?? []
    const before =
      segments.findLast(({ generated }) => generated < atColumn) ??
      segments[0] ??
      lines
        .slice(0, atLine)
        .findLast(({ length }) => length > 0)
        ?.at(-1)
    return before === undefined ? { line: atLine, column: atColumn } : { line: before.line, column: before.column }
  }
}
