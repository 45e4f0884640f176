// The size rules on functions, read from TypeScript's syntax tree.
import ts from 'typescript'

/** @param {ts.Node} node @returns {node is ts.SignatureDeclaration} */
function hasParameters(node) {
  return ts.isFunctionLike(node) && !ts.isIndexSignatureDeclaration(node) && !ts.isJSDocSignature(node)
}

/** @param {ts.ParameterDeclaration} parameter */
function isBoolean({ type, initializer }) {
  const types = type === undefined ? [] : ts.isUnionTypeNode(type) ? type.types : [type]
  const isLiteral = initializer?.kind === ts.SyntaxKind.TrueKeyword || initializer?.kind === ts.SyntaxKind.FalseKeyword
  return isLiteral || types.some(({ kind }) => kind === ts.SyntaxKind.BooleanKeyword)
}

/** The condition of an assertion is a statement, not a switch. @param {ts.ParameterDeclaration} parameter @param {ts.SignatureDeclaration} node */
function isAsserted({ name }, { type }) {
  return (
    type !== undefined &&
    ts.isTypePredicateNode(type) &&
    type.assertsModifier !== undefined &&
    ts.isIdentifier(name) &&
    ts.isIdentifier(type.parameterName) &&
    type.parameterName.text === name.text
  )
}

/** @param {ts.SignatureDeclaration} node @param {ts.SourceFile} file */
function nameOf(node, file) {
  if (node.name !== undefined) return node.name.getText(file)
  if (ts.isConstructorDeclaration(node)) return 'constructor'
  const { parent } = node
  return ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) || ts.isPropertyDeclaration(parent) ? parent.name.getText(file) : 'a function'
}

/**
 * @param {ts.SignatureDeclaration} node @param {ts.SourceFile} file @param {{ functionLines: number, parameters: number }} limits
 * @returns {import('./sizes.mjs').Problem[]}
 */
function functionProblems(node, file, limits) {
  const name = nameOf(node, file)
  const first = file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1
  const lines = file.getLineAndCharacterOfPosition(node.getEnd()).line + 2 - first
  const parameters = node.parameters.filter((parameter) => parameter.name.getText(file) !== 'this')
  const problems = []
  if (lines > limits.functionLines) problems.push(`${name} has ${lines} lines, and ${limits.functionLines} are the limit`)
  if (parameters.length > limits.parameters) problems.push(`${name} has ${parameters.length} positional parameters, and ${limits.parameters} are the limit`)
  for (const parameter of parameters) {
    if (isBoolean(parameter) && !isAsserted(parameter, node))
      problems.push(`${name} takes the boolean ${parameter.name.getText(file)} by position; name it in an options object`)
  }
  return problems.map((text) => ({ line: first, text }))
}

/**
 * @param {string} path @param {string} text @param {{ functionLines: number, parameters: number }} limits
 * @returns {import('./sizes.mjs').Problem[]}
 */
export function typescriptProblems(path, text, limits) {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  /** @type {import('./sizes.mjs').Problem[]} */
  const problems = []
  const visit = (/** @type {ts.Node} */ node) => {
    if (hasParameters(node)) problems.push(...functionProblems(node, file, limits))
    ts.forEachChild(node, visit)
  }
  visit(file)
  return problems
}
