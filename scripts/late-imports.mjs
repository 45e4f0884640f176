// Makes of an ES module a CommonJS one whose imports are loaded when something of them is first used, so that a command loads what it uses and nothing else.
// See docs/decisions/0015-bundles.md.
import { buildPackages } from './runtimes.mjs'

/** @typedef {{ type: string, start: number, end: number } & Record<string, any>} Node */

/** What esbuild puts before each module, and `lateHelpers` before all of them. */
const helperNames = [
  '__defProp',
  '__getOwnPropDesc',
  '__getOwnPropNames',
  '__hasOwnProp',
  '__export',
  '__copyProps',
  '__toCommonJS',
  '__create',
  '__getProtoOf',
  '__toESM',
]

/** For what `withLateImports` makes. Everything is a getter, because modules may need each other. */
export const lateHelpers = [
  'var __late=load=>({loaded:void 0,get of(){return this.loaded??=load()}});',
  'var __toESM=module=>({__proto__:null,default:module,...module});',
  'var __export=(target,all)=>{for(const name in all)Object.defineProperty(target,name,{get:all[name],enumerable:true})};',
].join('')

/** @param {string} text a TypeScript module @returns {Promise<string>} */
export async function withLateImports(text) {
  const esbuild = /** @type {import('esbuild')} */ (buildPackages('esbuild'))
  const { parse } = /** @type {import('acorn')} */ (buildPackages('acorn'))
  // Newer syntax is left for whoever bundles.
  const { code } = await esbuild.transform(text, {
    loader: 'ts',
    format: 'cjs',
    platform: 'node',
    target: 'esnext',
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  })
  const program = /** @type {Node} */ (/** @type {unknown} */ (parse(code, { ecmaVersion: 'latest', sourceType: 'script', allowReturnOutsideFunction: true })))
  const names = identifiersIn(program)
  const edits = program.body.flatMap((/** @type {Node} */ statement) => editsOf(statement, names, code))
  return applied(code, [...edits, ...nodesOf('ImportExpression', program).flatMap(importEdit)])
}

/** @typedef {{ start: number, end: number, text: string }} Edit */

/** @param {Node} statement @param {Map<string, Node[]>} names @param {string} code @returns {Edit[]} */
function editsOf(statement, names, code) {
  const { start, end } = statement
  if (statement.type === 'ExpressionStatement') {
    const { left, right } = statement.expression
    const isExports = left?.type === 'MemberExpression' && right?.type === 'CallExpression' && right.callee.name === '__toCommonJS'
    return isExports ? [{ start: right.start, end: right.end, text: right.arguments[0].name }] : []
  }
  if (statement.type !== 'VariableDeclaration') return []
  const [{ id, init }] = statement.declarations
  if (helperNames.includes(id.name)) return [{ start, end, text: '' }]
  const required = requireIn(init)
  const used = names.get(id.name)?.filter((node) => node.start < start || node.end > end) ?? []
  // Imported for what it does.
  if (required === undefined || used.length === 0) return []
  const value = isOurOwnKind(required.arguments[0].value) ? required : init
  return [
    { start: init.start, end: init.end, text: `__late(() => ${code.slice(value.start, value.end)})` },
    ...used.map((node) => ({ start: node.end, end: node.end, text: '.of' })),
  ]
}

/** Its exports are as they were written, and need no wrapping to be a namespace. @param {string} specifier */
function isOurOwnKind(specifier) {
  return specifier.startsWith('.') || specifier === 'zod'
}

/** @param {Node | null} node of `require(…)`, wrapped or not @returns {Node | undefined} */
function requireIn(node) {
  if (node?.type !== 'CallExpression') return undefined
  if (node.callee.name === 'require') return node
  return node.callee.name === '__toESM' ? requireIn(node.arguments[0]) : undefined
}

/** A module of ours that is asked for while the program runs is one of the program's; what is named by a variable is somebody else's. @param {Node} node @returns {Edit[]} */
function importEdit({ start, end, source }) {
  return typeof source.value === 'string' && isOurOwnKind(source.value)
    ? [{ start, end, text: `Promise.resolve().then(() => require(${JSON.stringify(source.value)}))` }]
    : []
}

/** Those that name a variable, by name. @param {Node} program @returns {Map<string, Node[]>} */
function identifiersIn(program) {
  /** @type {Map<string, Node[]>} */
  const found = new Map()
  for (const node of nodesOf('Identifier', program)) found.set(node.name, [...(found.get(node.name) ?? []), node])
  return found
}

/** Names of properties left out. @param {string} type @param {Node} node @returns {Node[]} */
function nodesOf(type, node) {
  const inner = Object.entries(node).flatMap(([key, value]) => {
    if ((key === 'property' || key === 'key') && node.computed === false) return []
    return (Array.isArray(value) ? value : [value]).flatMap((child) => (typeof child?.type === 'string' ? nodesOf(type, child) : []))
  })
  return node.type === type ? [node, ...inner] : inner
}

/** @param {string} code @param {readonly Edit[]} edits */
function applied(code, edits) {
  let text = code
  for (const edit of [...edits].sort((one, other) => other.start - one.start)) text = text.slice(0, edit.start) + edit.text + text.slice(edit.end)
  return text
}
