// Bundles one target with what it tries, and makes every branch of it count: the feedback that tells an input which leads somewhere new from one that does not.
import { readFileSync, writeFileSync } from 'node:fs'
import { parse } from 'acorn'
import { build } from 'esbuild'

/** @typedef {{ start: number, end: number, type: string } & Record<string, any>} Node */
/** @typedef {{ at: number, text: string }} Insertion */

const mostTokenLength = 40

class Instrumenter {
  /** @type {Insertion[]} */
  #insertions = []
  #counters = 0
  /** Texts that the code knows, which no mutation would come upon by chance. @type {Set<string>} */
  tokens = new Set()

  get counters() {
    return this.#counters
  }

  #count() {
    return `__branches[${this.#counters++}]++`
  }

  /** Of two at one place the one that opens later is inside. @param {Node} node @param {string} before @param {string} after */
  #wrap(node, before, after) {
    this.#insertions.push({ at: node.start, text: before })
    this.#insertions.push({ at: node.end, text: after })
  }

  /** @param {Node | null | undefined} statement */
  #statement(statement) {
    if (!statement) return
    if (statement.type === 'BlockStatement') this.#insertions.push({ at: statement.start + 1, text: `${this.#count()};` })
    else this.#wrap(statement, `{${this.#count()};`, '}')
  }

  /** @param {Node} expression */
  #expression(expression) {
    this.#wrap(expression, `(${this.#count()},(`, '))')
  }

  /** @param {Node} node */
  #visit(node) {
    if (node.type === 'IfStatement') {
      this.#statement(node.consequent)
      this.#statement(node.alternate)
    }
    if (['ForStatement', 'ForOfStatement', 'ForInStatement', 'WhileStatement', 'DoWhileStatement'].includes(node.type)) this.#statement(node.body)
    if (node.type === 'SwitchCase' && node.consequent[0]) this.#insertions.push({ at: node.consequent[0].start, text: `${this.#count()};` })
    if (node.type === 'CatchClause') this.#statement(node.body)
    if (/Function/.test(node.type) && node.body) (node.body.type === 'BlockStatement' ? this.#statement : this.#expression).call(this, node.body)
    if (node.type === 'ConditionalExpression') for (const branch of [node.consequent, node.alternate]) this.#expression(branch)
    if (node.type === 'LogicalExpression') this.#expression(node.right)
    if (node.type === 'Literal' && typeof node.value === 'string' && node.value.length <= mostTokenLength) this.tokens.add(node.value)
  }

  /** @param {unknown} node */
  walk(node) {
    if (Array.isArray(node)) for (const each of node) this.walk(each)
    else if (typeof node === 'object' && node !== null && typeof (/** @type {any} */ (node).type) === 'string') {
      const known = /** @type {Node} */ (node)
      this.#visit(known)
      for (const [key, value] of Object.entries(known)) if (key !== 'type') this.walk(value)
    }
  }

  /** @param {string} text */
  apply(text) {
    // Stable: what is wrapped later lies within what was wrapped before, so at one place openings keep their order and endings reverse it.
    const ordered = this.#insertions.map((each, index) => ({ ...each, index })).sort((one, other) => one.at - other.at || orderAt(one, other))
    let from = 0
    const parts = []
    for (const { at, text: added } of ordered) {
      parts.push(text.slice(from, at), added)
      from = at
    }
    return [...parts, text.slice(from)].join('')
  }
}

/** Endings before openings, since what ends here is before what begins here. @param {Insertion & { index: number }} one @param {Insertion & { index: number }} other */
function orderAt(one, other) {
  const ends = (/** @type {Insertion} */ { text }) => (/^[})]/.test(text) ? 0 : 1)
  if (ends(one) !== ends(other)) return ends(one) - ends(other)
  return ends(one) === 0 ? other.index - one.index : one.index - other.index
}

/**
 * Writes the module; tells how many branches it has, and what texts are in it.
 * @param {{ entry: string, outfile: string }} paths
 */
export async function instrument({ entry, outfile }) {
  await build({ entryPoints: [entry], outfile, bundle: true, format: 'esm', platform: 'node', target: 'node20', packages: 'external', logLevel: 'error' })
  const text = readFileSync(outfile, 'utf8')
  const instrumenter = new Instrumenter()
  instrumenter.walk(parse(text, { ecmaVersion: 'latest', sourceType: 'module' }))
  const counted = instrumenter.apply(text)
  writeFileSync(outfile, `const __branches = new Uint8Array(${instrumenter.counters});\n${counted}\nexport { __branches };\n`)
  return { branches: instrumenter.counters, tokens: [...instrumenter.tokens].filter((token) => token.length > 0) }
}
