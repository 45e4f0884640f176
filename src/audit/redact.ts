/**
 * What looks like a secret is replaced before it is written down: what is once in the chain cannot be taken out of it. Only known forms are found; a password that looks like any other
 * word is not, which is why a tenant can have only hashes of its code kept. Pure.
 */
import type { Json } from '../contract/posture.js'

export const redacted = '(redacted)'

/** Forms that are recognised by what they begin with. Each run is bounded, so that no text takes long. */
const forms: readonly RegExp[] = [
  // Ours.
  /\bgbx_[a-z0-9]{1,40}_[A-Za-z0-9]{1,80}/g,
  // Keys of services, by their prefixes: OpenAI and Anthropic, GitHub, GitLab, Slack, npm, PyPI, Stripe, SendGrid, Hugging Face, Google, AWS, DigitalOcean, Docker, Databricks, E2B.
  /\bsk-[A-Za-z0-9_-]{16,300}/g,
  /\b(?:gh[pousr]_[A-Za-z0-9]{16,300}|github_pat_[A-Za-z0-9_]{16,300})/g,
  /\bgl(?:pat|ptt|dt|rt|cbt|ft|soat|imt|agent)-[A-Za-z0-9_-]{16,300}/g,
  /\bx(?:ox[a-z]|app)-[A-Za-z0-9-]{10,300}/g,
  /\bnpm_[A-Za-z0-9]{30,100}/g,
  /\bpypi-[A-Za-z0-9_-]{30,400}/g,
  /\b(?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,300}/g,
  /\bSG\.[A-Za-z0-9_-]{16,100}\.[A-Za-z0-9_-]{16,100}/g,
  /\bhf_[A-Za-z0-9]{20,100}/g,
  /\b(?:AIza[A-Za-z0-9_-]{30,60}|ya29\.[A-Za-z0-9_-]{20,400}|GOCSPX-[A-Za-z0-9_-]{20,60})/g,
  /\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}\b/g,
  /\b(?:dop|doo|dor)_v1_[a-f0-9]{40,80}/g,
  /\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,100}/g,
  /\bdapi[a-f0-9]{32}\b/g,
  /\be2b_[A-Za-z0-9]{20,100}/g,
  // JSON web tokens.
  /\beyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,8000}(?:\.[A-Za-z0-9_-]{0,2000})?/g,
  // Private keys, also those whose end was cut off.
  /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[\s\S]{0,20000}?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|$)/g,
]

/** What follows a name that tells what it is: the name stays. */
const named: readonly RegExp[] = [
  /((?:\b|_)(?:authorization|proxy-authorization)["']?\s{0,3}[:=]\s{0,3}["']?(?:(?:bearer|basic|token|digest)\s{1,3})?)[^\s"',;]{4,8000}/gi,
  /(\b(?:bearer|basic)\s{1,3})[A-Za-z0-9+/._~=-]{16,8000}/gi,
  /((?:\b|[_-])(?:api[_-]?key|access[_-]?key|secret[_-]?key|secret|client[_-]?secret|password|passwd|pwd|passphrase|token|access[_-]?token|auth[_-]?token|private[_-]?key|credentials?)["']?\s{0,3}(?:[:=]|=>)\s{0,3})(?:"[^"\n]{1,8000}"|'[^'\n]{1,8000}'|[^\s"',;&|)}\]]{4,8000})/gi,
  /(--(?:password|passwd|token|api-key|secret)(?:=|\s{1,3}))[^\s-][^\s]{0,8000}/gi,
  // The name and the password of an address.
  /(\b[a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/?#@"']{1,300}:[^\s/?#@"']{1,300}(?=@)/gi,
]

/** What is shorter than any form of letters and digits alone, and has none of the signs that all others have. Most names and words are so. */
const shortestPlain = 20
const sign = /[-_.:=\s]/

/** Longer texts are cut before: their end is kept as a hash. */
export function redactText(text: string): string {
  if (text.length < shortestPlain && !sign.test(text)) return text
  const withoutForms = forms.reduce((known, form) => known.replace(form, redacted), text)
  return named.reduce((known, form) => known.replace(form, `$1${redacted}`), withoutForms)
}

/** Names whose values are never written down, whatever they look like. */
const secretName = /^(?:authorization|proxy-authorization|cookie|set-cookie|secret|password|passwd|token|api[_-]?key|private[_-]?key)$/i

/** Every text in a value, and all of what has a telling name. Of credentials only whom they are for. */
export function redact(value: Json, name = ''): Json {
  if (typeof value === 'string') return secretName.test(name) ? redacted : redactText(value)
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => (name === 'credentials' ? credentialOf(item) : redact(item, name)))
  if (typeof value !== 'object' || value === null) return value
  if (name === 'credentials') return credentialOf(value)
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [redactText(key), redact(member, key)]))
}

function credentialOf(value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return redacted
  const { host, header } = value as Readonly<Record<string, Json>>
  return { ...(typeof host === 'string' && { host: redactText(host) }), ...(typeof header === 'string' && { header: redactText(header) }) }
}
