/** Headers that the host adds and programs never hold. Their values are read once, when the rules begin to hold, and are let go of only for the wire. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { SandboxError } from '../contract/errors.js'
import type { Credential, Host, NetworkRules } from '../contract/network.js'
import type { Secret } from '../contract/secret.js'
import { secretSchema } from '../contract/secret.js'
import { hostText, isSameHost } from '../policy/network-host.js'
import type { Header } from './front-words.js'
import { keyOf } from './http-head.js'

export interface Credentials {
  /** With what is added for that host, in the place of what the program itself wrote there. Only for a connection that is encrypted and verified. */
  addTo(headers: readonly Header[], to: { readonly host: Host; readonly port: number }): Header[]
  /** Whether something is. */
  areFor(to: { readonly host: Host; readonly port: number }): boolean
}

const mostFileBytes = 64 * 1024

/** Throws SandboxError('invalid') that names the field when a value cannot be had. */
export function readCredentials(rules: NetworkRules, env: Readonly<Record<string, string | undefined>> = process.env): Credentials {
  const held = rules.credentials.map((credential, index) => ({ ...credential, secret: secretOf(credential, { index, env }) }))
  return {
    addTo: (headers, { host, port }) => {
      const ours = held.filter((credential) => isSameHost(credential.host, host) && credential.port === port)
      const names = new Set(ours.map(({ header }) => keyOf(header)))
      const theirs = headers.filter(([name]) => !names.has(keyOf(name)))
      return [...theirs, ...ours.map(({ header, secret }): Header => [header, secret.reveal()])]
    },
    areFor: ({ host, port }) => held.some((credential) => isSameHost(credential.host, host) && credential.port === port),
  }
}

function secretOf({ host, source }: Credential, { index, env }: { index: number; env: Readonly<Record<string, string | undefined>> }): Secret {
  const field = `network.credentials[${index}]`
  if ('value' in source) return source.value
  if ('env' in source) {
    const value = env[source.env]
    if (value === undefined) throw lacking(`${field}.env`, `the variable ${source.env} is not set`, `export ${source.env}=…`)
    return parseSecret(`${field}.env`, value)
  }
  return parseSecret(`${field}.file`, readSecretFile(source.file, { field: `${field}.file`, host }))
}

function readSecretFile(path: string, { field, host }: { field: string; host: Host }): string {
  try {
    // A pipe would wait for a writer that never comes.
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      if (!fstatSync(descriptor).isFile()) throw lacking(field, `${path} is no file`, `ls -l ${path}`)
      const bytes = Buffer.alloc(mostFileBytes + 1)
      const length = readSync(descriptor, bytes)
      if (length > mostFileBytes) throw lacking(field, `${path} has more than ${mostFileBytes} bytes`, `ls -l ${path}`)
      return bytes.toString('utf8', 0, length).replace(/\r?\n$/, '')
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    if (error instanceof SandboxError) throw error
    throw lacking(field, `cannot read the credential for ${hostText(host)}: ${(error as NodeJS.ErrnoException).code}`, `ls -l ${path}`)
  }
}

/** What is wrong is told without showing any of it. */
function parseSecret(field: string, value: string): Secret {
  const parsed = secretSchema.safeParse(value)
  if (parsed.success) return parsed.data
  throw lacking(field, parsed.error.issues[0]?.message ?? 'is no header', 'printf %s "$VALUE"')
}

function lacking(field: string, problem: string, hint: string): SandboxError {
  return new SandboxError('invalid', `${field}: ${problem}`, { hint })
}
