import type { Recipe } from '../../contract/templates.js'
import { baseChecks, baseEnv, baseLinks, basePackages, baseWithout } from './base.js'

export const shell: Recipe = {
  name: 'shell',
  summary: 'bash and the usual tools',
  packages: basePackages,
  without: baseWithout,
  links: baseLinks,
  env: baseEnv,
  checks: baseChecks,
  diskBytes: 200 * 2 ** 20,
}
