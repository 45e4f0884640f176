/** The smallest template there is: one package without any other. */
import type { Recipe } from '../../src/contract/templates.js'

export const busybox: Recipe = {
  name: 'busybox',
  summary: 'one program',
  packages: ['busybox-static'],
  without: [],
  links: [{ path: 'usr/bin/sh', target: 'busybox' }],
  env: { PATH: '/usr/bin', LANG: 'C.UTF-8', OWN: 'yes' },
  checks: [['busybox', 'test', '-x', '/bin/busybox']],
  diskBytes: 100 * 2 ** 20,
}
