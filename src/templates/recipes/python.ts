import type { Recipe } from '../../contract/templates.js'
import { baseChecks, baseEnv, baseLinks, basePackages, baseWithout } from './base.js'

export const python: Recipe = {
  name: 'python',
  summary: 'Python and its standard library',
  packages: [...basePackages, 'python3', 'python-is-python3'],
  without: baseWithout,
  links: baseLinks,
  env: baseEnv,
  checks: [...baseChecks, ['python3', '-c', 'import ssl, sqlite3, ctypes, lzma, bz2, zoneinfo; zoneinfo.ZoneInfo("Europe/Paris")']],
  diskBytes: 400 * 2 ** 20,
}
