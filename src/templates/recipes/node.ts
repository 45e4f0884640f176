import type { Recipe } from '../../contract/templates.js'
import { baseChecks, baseEnv, baseLinks, basePackages, baseWithout } from './base.js'

export const node: Recipe = {
  name: 'node',
  summary: 'Node.js',
  packages: [...basePackages, 'nodejs'],
  without: baseWithout,
  links: baseLinks,
  env: baseEnv,
  checks: [...baseChecks, ['node', '-e', "require('node:crypto').createHash('sha256').update('x').digest('hex')"]],
  diskBytes: 500 * 2 ** 20,
}
