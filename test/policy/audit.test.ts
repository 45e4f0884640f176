import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { PolicyInput } from '../../src/contract/policy.js'
import { auditPolicy, severities } from '../../src/policy/audit.js'
import { parsePolicy } from '../../src/policy/policy-file.js'
import { policies } from './arbitrary-policy.js'

const GiB = 2 ** 30
const machine = { memoryBytes: 8 * GiB, processors: 4 }

const audit = (document: PolicyInput) => auditPolicy(parsePolicy(document), machine)
const found = (document: PolicyInput) => audit(document).map(({ severity, field }) => `${severity} ${field}`)

/** Extends the preset that grants least, so that what is found is what the case grants. */
const quiet = found({ extends: 'strict' })
const beyond = (document: PolicyInput): readonly string[] => {
  // Ceilings only tighten, so what a case grants it grants by itself: all that strict caps, but for one field.
  const strict = parsePolicy('strict').ceiling
  const ceiling = { ...strict, ...document.ceiling }
  return found({ ...document, ceiling }).filter((finding) => !quiet.includes(finding))
}

test('nothing worse than low is found where least is granted', () => {
  expect(quiet).toEqual(['low ceiling.limits.readRate', 'low ceiling.limits.writeRate', 'low ceiling.commands'])
})

test('a policy that says nothing grants everything, and all of it is named', () => {
  const all = found({})
  expect(all.filter((finding) => finding.startsWith('high'))).toEqual([
    'high ceiling.minTier',
    'high ceiling.seccomp',
    'high ceiling.mounts.modes',
    'high ceiling.mounts.sources',
    'high ceiling.limits.memory',
    'high ceiling.limits.processes',
  ])
  expect(all).toContain('medium ceiling.users')
  expect(all).toContain('medium ceiling.limits.time')
  expect(all).toContain('medium ceiling.lifetime')
  expect(all).toContain('low ceiling.roots')
})

const limits = parsePolicy('strict').ceiling.limits

describe('is named:', () => {
  test.each<[string, PolicyInput, readonly string[]]>([
    ['a mount for writing', { ceiling: { mounts: { sources: ['/srv/out'], modes: ['ro', 'rw'] } } }, ['high ceiling.mounts.modes']],
    ['a mount of a wide folder', { ceiling: { mounts: { sources: ['/home/ana'], modes: ['ro'] } } }, ['high ceiling.mounts.sources']],
    ['a mount of the whole machine', { ceiling: { mounts: { sources: ['/'], modes: ['ro'] } } }, ['high ceiling.mounts.sources']],
    ['a mount of any folder', { ceiling: { mounts: { modes: ['ro'] } } }, ['high ceiling.mounts.sources']],
    ['not a narrow mount for reading', { ceiling: { mounts: { sources: ['/srv/in'], modes: ['ro'] } } }, []],
    ['root of the cell', { ceiling: { users: ['user', 'root'] } }, ['medium ceiling.users']],
    ['a writable root', { ceiling: { roots: ['overlay'] } }, ['low ceiling.roots']],
    ['a profile of a spec', { ceiling: { seccomp: 'custom' } }, ['high ceiling.seccomp']],
    ['a profile of its own', { defaults: { seccomp: '/p.json' } }, ['medium defaults.seccomp']],
    ['no boundary', { ceiling: { minTier: 'none' } }, ['high ceiling.minTier']],
    ['a weak boundary', { ceiling: { minTier: 'wasm' } }, ['medium ceiling.minTier']],
    ['more memory than there is', { ceiling: { limits: { ...limits, memory: '8g' } } }, ['high ceiling.limits.memory']],
    ['most of the memory', { ceiling: { limits: { ...limits, memory: '5g' } } }, ['medium ceiling.limits.memory']],
    ['every processor', { ceiling: { limits: { ...limits, cpus: 4 } } }, ['medium ceiling.limits.cpus']],
    ['very many processes', { ceiling: { limits: { ...limits, processes: 5000 } } }, ['medium ceiling.limits.processes']],
    ['a long life', { ceiling: { lifetime: '2h' } }, ['low ceiling.lifetime']],
    ['a very long life', { ceiling: { lifetime: '2d' } }, ['medium ceiling.lifetime']],
    ['an interpreter', { ceiling: { commands: ['ls', '/usr/bin/python3.11', 'bash'] } }, ['medium ceiling.commands']],
    ['not a plain program', { ceiling: { commands: ['ls', 'cat'] } }, []],
    ['a secret by its name', { defaults: { env: { AWS_SECRET_ACCESS_KEY: 'x' } } }, ['high defaults.env.AWS_SECRET_ACCESS_KEY']],
    ['a secret by its value', { defaults: { env: { X: 'ghp_0123456789' } } }, ['high defaults.env.X']],
    ['a password in an address', { defaults: { env: { DB: 'postgres://u:p@host/db' } } }, ['high defaults.env.DB']],
    ['not a plain variable', { defaults: { env: { TZ: 'UTC', LANG: 'C' } } }, []],
    ['lowering instead of refusing', { onExceed: 'clamp' }, ['low onExceed']],
    ['any public host', { ceiling: { network: {} } }, ['medium ceiling.network']],
    ['any public host by a list', { ceiling: { network: { hosts: ['a.example', '*:22'] } } }, ['medium ceiling.network.hosts']],
    ['not a list of hosts', { ceiling: { network: { hosts: ['a.example', '*.b.example'] } } }, []],
    ['neighbours', { ceiling: { network: { hosts: [], private: ['10.1.0.0/16'] } } }, ['medium ceiling.network.private']],
    ['the machine itself', { ceiling: { network: { hosts: [], private: ['127.0.0.0/8'] } } }, ['high ceiling.network.private']],
    [
      "a cloud's metadata",
      { ceiling: { network: { hosts: [], private: ['169.254.0.0/16', 'fc00::/7'] } } },
      ['high ceiling.network.private', 'high ceiling.network.private'],
    ],
    [
      'a credential in the file',
      { ceiling: { network: { hosts: [] } }, defaults: { network: { credentials: [{ host: 'a.example', header: 'x-key', value: 'sesame' }] } } },
      ['high defaults.network.credentials[0].value'],
    ],
    ['a list that allows nothing', { ceiling: { templates: [] } }, ['low ceiling.templates']],
  ])('%s', (_, document, expected) => {
    expect(beyond(document)).toEqual(expected)
  })
})

test('every finding says what is granted and what it may cost, and never the value of a variable', () => {
  const findings = audit({ defaults: { env: { TOKEN: 'hush-hush' } }, onExceed: 'clamp' })
  expect(findings.filter(({ grant, consequence }) => grant === '' || consequence === '')).toEqual([])
  expect(JSON.stringify(findings)).not.toContain('hush')
  expect(findings.find(({ field }) => field === 'ceiling.mounts.modes')).toEqual({
    severity: 'high',
    field: 'ceiling.mounts.modes',
    grant: 'mounts for writing: any folder of this machine',
    consequence: 'programs may change or delete everything beneath, and leave there what others will run',
  })
})

test('the worst comes first, whatever the policy', () => {
  fc.assert(
    fc.property(policies, (document) => {
      const ranks = audit(document).map(({ severity }) => severities.indexOf(severity))
      expect(ranks).toEqual([...ranks].sort((a, b) => a - b))
    }),
  )
})
