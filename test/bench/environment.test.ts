import { expect, test } from 'vitest'
import { environmentOf, layDownBurdens } from '../../src/bench/index.js'

test("what a shell sets for every Node is nobody's who is measured, and the report says so", () => {
  const env: NodeJS.ProcessEnv = { PATH: '/usr/bin', NODE_EXTRA_CA_CERTS: '/some/bundle.pem', NODE_OPTIONS: '--trace-gc' }
  const without = layDownBurdens(env)
  expect(env).toEqual({ PATH: '/usr/bin' })
  expect(environmentOf({ version: '1.2.3', peers: [], without })).toMatchObject({ without: 'NODE_EXTRA_CA_CERTS NODE_OPTIONS' })
  expect(environmentOf({ version: '1.2.3', peers: [], without: layDownBurdens(env) })).not.toHaveProperty('without')
})
