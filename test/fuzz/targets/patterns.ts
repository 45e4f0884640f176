import { parseGlob } from '../../../src/policy/glob.js'
import { posixExpression } from '../../../src/policy/search-expression.js'
import { type FuzzTarget, holds, textIn, unlessRefused } from '../target.js'

const paths = ['a', 'a/b/c.ts', `${'a'.repeat(40)}/${'b'.repeat(40)}`]

/** Patterns of names and of contents: matching takes no time that anyone would notice. */
export const target: FuzzTarget = {
  name: 'patterns',
  most: 200,
  seeds: ['**/*.{ts,js}', 'a[!b-d]?', '[[:alpha:]]+(a|b){2,3}', '*'.repeat(20), '{a,b{c,d}}', '[^\\]^-]', '\\d+\\s*?'],
  run(bytes) {
    const text = textIn(bytes)
    const glob = unlessRefused(() => parseGlob(text))
    if (glob) for (const path of paths) holds(typeof glob.matches(path) === 'boolean', 'a name matches or not')
    unlessRefused(() => posixExpression(text))
  },
}
