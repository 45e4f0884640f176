import type { Recipe } from '../../contract/templates.js'
import { data } from './data.js'
import { node } from './node.js'
import { polyglot } from './polyglot.js'
import { python } from './python.js'
import { shell } from './shell.js'

/** All that can be built here, by name. */
export const recipes: ReadonlyMap<string, Recipe> = new Map([data, node, polyglot, python, shell].map((recipe) => [recipe.name, recipe]))
