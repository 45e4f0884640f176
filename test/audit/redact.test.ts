import { describe, expect, test } from 'vitest'
import { redact, redacted, redactText } from '../../src/audit/redact.js'
import { shownCode, shownRequest } from '../../src/audit/shown.js'
import { Secret } from '../../src/contract/secret.js'
import { makeKey } from '../../src/tenants/key-format.js'
import { entryOf, ownTrailFolder } from './own-trail.js'

const settings = { code: 'full', env: 'names', receipts: 'asked' } as const
// Put together here, so that no file of ours holds what looks like a secret.
const letters = (count: number): string => 'aB3dE5gH7jK9mN1pQ2sT4vW6yZ8'.repeat(12).slice(0, count)
const hex = (count: number): string => '0123456789abcdef'.repeat(8).slice(0, count)

/** Each as it might stand in a command, and the part that must not be found. */
const secrets: readonly (readonly [name: string, secret: string])[] = [
  ['our own key', makeKey().secret],
  ['OpenAI', `sk-proj-${letters(40)}`],
  ['Anthropic', `sk-ant-api03-${letters(60)}`],
  ['GitHub', `ghp_${letters(36)}`],
  ['GitHub, fine-grained', `github_pat_${letters(60)}`],
  ['GitLab', `glpat-${letters(20)}`],
  ['Slack', `xoxb-${'1'.repeat(12)}-${letters(24)}`],
  ['npm', `npm_${letters(36)}`],
  ['PyPI', `pypi-${letters(80)}`],
  ['Stripe', `sk_live_${letters(24)}`],
  ['SendGrid', `SG.${letters(22)}.${letters(43)}`],
  ['Hugging Face', `hf_${letters(34)}`],
  ['Google', `AIza${letters(35)}`],
  ['AWS', `AKIA${'ABCDEFGH23456789'}`],
  ['DigitalOcean', `dop_v1_${hex(64)}`],
  ['Docker', `dckr_pat_${letters(27)}`],
  ['a JSON web token', `eyJ${letters(20)}.eyJ${letters(40)}.${letters(43)}`],
]

describe('what is written down', () => {
  test.each(secrets)('has no secret of %s, wherever it stands', (_, secret) => {
    for (const text of [secret, `curl -H 'x-key: ${secret}' https://example.com`, `{"k":"${secret}"}`, `line\n${secret}\nline`, `a=${secret};b=1`])
      expect(redactText(text)).not.toContain(secret.slice(-12))
    expect(redactText(`before ${secret} after`)).toMatch(/^before .*\(redacted\).* after$/)
  })

  test.each([
    ['a header', 'Authorization: Bearer abcdefghijklmnop', 'abcdefghijklmnop'],
    ['basic credentials', 'authorization: Basic dXNlcjpwYXNzd29yZA==', 'dXNlcjpwYXNzd29yZA'],
    ['a password in an address', 'psql postgres://anna:hunter2hunter2@db.example.com/x', 'hunter2hunter2'],
    ['an assignment', 'export DB_PASSWORD=hunter2hunter2 && run', 'hunter2hunter2'],
    ['JSON', '{"api_key": "hunter2 hunter2"}', 'hunter2'],
    ['a flag', 'mysql --password=hunter2hunter2 -u me', 'hunter2hunter2'],
    ['a private key', `-----BEGIN RSA PRIVATE KEY-----\n${letters(200)}\n-----END RSA PRIVATE KEY-----`, letters(100)],
    ['a private key without its end', `-----BEGIN PRIVATE KEY-----\n${letters(200)}`, letters(100)],
  ])('has no secret that %s gives away', (_, text, secret) => {
    expect(redactText(text)).not.toContain(secret)
    expect(redactText(text)).toContain(redacted)
  })

  test.each([`gbx_${'a'}_b`, 'pwd=abcd', 'token: x'.padEnd(12, 'x'), `AKIA${'ABCDEFGH23456789'}`, '--token abc', 'a1://b:c@d', `Bearer\t${letters(16)}`])(
    'has no secret that is as short as one can be: %s',
    (text) => {
      expect(redactText(text)).toContain(redacted)
    },
  )

  test.each([
    'print("hello")',
    'pip install requests==2.31',
    'https://example.com/a?b=c#d',
    'the token bucket is empty',
    'sk-short',
    'const keyboard = 1',
    'git@github.com:a/b.git',
  ])('is otherwise as it was: %s', (text) => {
    expect(redactText(text)).toBe(text)
  })

  test('of credentials tells whom they are for, and of names that tell, nothing', () => {
    const network = {
      allow: ['a.example'],
      credentials: [
        { host: 'a.example', header: 'x-api', value: 'plain words' },
        { host: 'b.example', header: 'y', env: 'HOME' },
      ],
    }
    expect(redact({ network, password: 'plain', Cookie: 'a=b' })).toEqual({
      network: {
        allow: ['a.example'],
        credentials: [
          { host: 'a.example', header: 'x-api' },
          { host: 'b.example', header: 'y' },
        ],
      },
      password: redacted,
      Cookie: redacted,
    })
  })

  test('takes no time to speak of, whatever the text is', () => {
    const hostile = [
      'a'.repeat(60_000),
      'password='.repeat(6000),
      '-----BEGIN PRIVATE KEY-----'.repeat(2000),
      'eyJ'.repeat(20_000),
      'a://b:'.repeat(10_000),
      'bearer '.repeat(8000),
      'sk-'.repeat(20_000),
    ]
    for (const text of hostile) {
      const started = performance.now()
      redactText(text)
      expect(performance.now() - started).toBeLessThan(1500)
    }
  })

  test('is a hash alone where a tenant wants that, the same that a receipt has', () => {
    const full = shownCode(['python3', '-c', 'print(1)'], settings)
    const hashed = shownCode(['python3', '-c', 'print(1)'], { ...settings, code: 'hash' })
    expect(full).toEqual({ text: ['python3', '-c', 'print(1)'], sha256: hashed.sha256 })
    expect(Object.keys(hashed)).toEqual(['sha256'])
    const long = shownCode('x'.repeat(1_000_000), settings)
    expect([(long.text as string).length, long.isCut]).toEqual([65_536, true])
  })

  test('has names of variables, and values only where a tenant wants that', () => {
    const request = { command: 'true', env: { B: 'plain words', A: makeKey().secret } }
    expect(shownRequest(request, settings).env).toEqual(['A', 'B'])
    const values = shownRequest(request, { ...settings, env: 'values' }).env
    expect(redact(values as never)).toEqual({ A: redacted, B: 'plain words' })
  })

  test('has nothing of what a secret holds, nor of functions, nor ends in a circle', () => {
    const circle: Record<string, unknown> = { value: new Secret('hidden words'), onRequest: () => 'x', deep: {} }
    ;(circle.deep as Record<string, unknown>).again = circle
    const text = JSON.stringify(shownRequest(circle, settings))
    expect(text).not.toContain('hidden words')
    expect(text).not.toContain('onRequest')
  })

  test('is redacted in the trail itself, in details and in messages', async () => {
    using folder = ownTrailFolder()
    await using trail = await folder.open()
    const { secret } = makeKey()
    const begun = await trail.append(entryOf(1, { details: { command: `curl -H "authorization: bearer ${secret}"`, [secret]: 1 } }))
    await trail.finish(begun, { outcome: { kind: 'error', code: 'broken', message: `it said ${secret}` } })
    const lines: string[] = []
    for await (const line of trail.export()) lines.push(line)
    expect(lines.join('')).not.toContain(secret.slice(-43))
    expect(lines.join('')).toContain(redacted)
  })

  test('is bounded: what is larger is known by its hash', async () => {
    using folder = ownTrailFolder()
    await using trail = await folder.open()
    await trail.append(entryOf(1, { details: { many: Array.from({ length: 100_000 }, (_, index) => index) } }))
    const { items } = await trail.list()
    expect(items[0]?.details).toEqual({ cut: true, bytes: expect.any(Number) as number, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string })
  })
})
