// Turns a piece of source into a script that the inspector evaluates in REPL mode (which knows top-level await):
// – what is declared at its top becomes `var`: it is there in later executions, and can be declared again in any way;
// – `import` becomes a call of the kernel's, which resolves from the working directory;
// – the last expression is handed to the kernel to be shown.
// Text is only replaced within its line, so that every place keeps its line, and its column can be told.
import { parse } from 'acorn'
import { Edits } from './positions.js'

const kernel = '__glovebox'
const options = {
  ecmaVersion: 'latest',
  sourceType: 'script',
  allowAwaitOutsideFunction: true,
  allowImportExportEverywhere: true,
  allowHashBang: true,
  preserveParens: true,
  locations: true,
}

/** @returns {{ code: string, names: string[], placeOf: (line: number, column: number) => { line: number, column: number } }} @throws {SyntaxError} with `loc` */
export function translate(source, { isGenerated = false } = {}) {
  const asExpression = objectIn(source)
  const text = asExpression ?? source
  const program = parse(text, options)
  const edits = new Edits(text)
  const names = []
  const imports = []
  for (const statement of program.body) translateStatement(statement, { edits, names, text, imports })
  if (/\bimport\b/.test(text)) for (const node of nodesIn(program)) translateImport(node, edits)
  if (text.startsWith('#!')) edits.blank(0, text.search(/[\n\r\u2028\u2029]|$/))
  showLast(
    program.body.findLast((statement) => !isEmpty(statement, isGenerated)),
    edits,
  )
  const { code, placeOf } = edits.apply()
  const head = imports.join('')
  return {
    code: head + code,
    names,
    placeOf(line, column) {
      if (line !== 1) return placeOf(line, column)
      const place = placeOf(line, Math.max(1, column - head.length))
      return asExpression === undefined ? place : { line, column: Math.max(1, place.column - 1) }
    },
  }
}

/** `{ a: 1 }` is a block, but nobody means one that ends without a semicolon and is an object when in brackets. */
function objectIn(source) {
  if (!/^\s*\{/.test(source) || /;\s*$/.test(source)) return undefined
  const text = `(${source}\n)`
  try {
    return parse(text, options).body.length === 1 ? text : undefined
  } catch {
    return undefined
  }
}

function translateStatement(statement, unit) {
  const { edits, names } = unit
  switch (statement.type) {
    case 'VariableDeclaration':
      return translateVariables(statement, unit)
    case 'FunctionDeclaration':
      names.push(statement.id.name)
      return
    case 'ClassDeclaration':
      names.push(statement.id.name)
      edits.insert(statement.start, `var ${statement.id.name}=`)
      edits.insert(statement.end, ';')
      return
    case 'ImportDeclaration':
      return translateStaticImport(statement, unit)
    case 'ExportNamedDeclaration':
    case 'ExportDefaultDeclaration':
    case 'ExportAllDeclaration':
      return translateExport(statement, unit)
  }
}

function translateVariables({ kind, start, declarations }, { edits, names }) {
  if (kind !== 'let' && kind !== 'const' && kind !== 'var') return
  for (const { id, init } of declarations) {
    names.push(...namesIn(id))
    // `let a` is undefined again; `var a` keeps what it has.
    if (kind === 'let' && init === null) edits.insert(id.end, '=void 0')
  }
  edits.replace(start, start + kind.length, 'var'.padEnd(kind.length))
}

/** Imports come before everything else, so the calls go to the front, on the first line. */
function translateStaticImport({ source, specifiers, attributes, start, end }, { edits, names, text, imports }) {
  const call = `await ${kernel}.import(${source.raw}${attributesIn({ attributes }, text)});`
  const namespace = specifiers.find(({ type }) => type === 'ImportNamespaceSpecifier')
  const named = specifiers.filter((specifier) => specifier !== namespace)
  for (const { local } of specifiers) names.push(local.name)
  const pattern = named.map(({ type, imported, local }) => `${type === 'ImportDefaultSpecifier' ? 'default' : keyOf(imported)}:${local.name}`)
  edits.blank(start, end)
  if (specifiers.length === 0) imports.push(call)
  else if (namespace === undefined) imports.push(`var{${pattern}}=${call}`)
  else imports.push(`var ${namespace.local.name}=${call}${named.length === 0 ? '' : `var{${pattern}}=${namespace.local.name};`}`)
  // A name that is not exported is an error, as in a module.
  const wanted = named.map(({ type, imported }) => (type === 'ImportDefaultSpecifier' ? 'default' : (imported.name ?? imported.value)))
  if (wanted.length > 0) imports[imports.length - 1] = imports.at(-1).replace(`${kernel}.import(`, `${kernel}.importNames(${JSON.stringify(wanted)},`)
}

function keyOf(imported) {
  return imported.type === 'Literal' ? JSON.stringify(imported.value) : imported.name
}

function attributesIn({ attributes }, text) {
  if (attributes === undefined || attributes.length === 0) return ''
  return `,{with:{${attributes.map((attribute) => text.slice(attribute.start, attribute.end)).join(',')}}}`
}

/** There is nobody to export to; what is declared is declared. */
function translateExport(statement, unit) {
  const { edits } = unit
  const { declaration, start, end, type } = statement
  if (!declaration) return edits.blank(start, end)
  edits.blank(start, declaration.start)
  if (type === 'ExportNamedDeclaration') return translateStatement(declaration, unit)
  if (/Declaration$/.test(declaration.type) && declaration.id) return translateStatement(declaration, unit)
  edits.insert(declaration.start, ';(')
  edits.insert(declaration.end, ')')
}

function translateImport(node, edits) {
  if (node.type === 'ImportExpression') edits.replace(node.start, node.start + 'import'.length, `${kernel}.import`)
  if (node.type === 'MetaProperty' && node.meta.name === 'import') edits.replace(node.start, node.end, `${kernel}.meta`)
}

function showLast(last, edits) {
  if (last?.type !== 'ExpressionStatement') return
  edits.insert(last.expression.start, `${kernel}.show((`)
  edits.insert(last.expression.end, '))')
}

/** `;`, and in what was made of a namespace of TypeScript, the `var` that comes last. */
function isEmpty({ type, kind, declarations }, isGenerated) {
  return type === 'EmptyStatement' || (isGenerated && type === 'VariableDeclaration' && kind === 'var' && declarations.every(({ init }) => init === null))
}

/** @returns {string[]} what a pattern declares */
function namesIn(pattern) {
  switch (pattern?.type) {
    case 'Identifier':
      return [pattern.name]
    case 'ObjectPattern':
      return pattern.properties.flatMap((property) => namesIn(property.type === 'RestElement' ? property.argument : property.value))
    case 'ArrayPattern':
      return pattern.elements.flatMap(namesIn)
    case 'AssignmentPattern':
      return namesIn(pattern.left)
    case 'RestElement':
      return namesIn(pattern.argument)
    default:
      return []
  }
}

/** All nodes, without recursion: source can be nested as deeply as the parser bears. */
function* nodesIn(root) {
  const waiting = [root]
  while (waiting.length > 0) {
    const node = waiting.pop()
    yield node
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? value : [value]) if (typeof child?.type === 'string') waiting.push(child)
    }
  }
}
