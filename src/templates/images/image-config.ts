/** What an image says of its programs. It is a stranger's word: parsed, bounded, and never more than a wish. */
import { arch } from 'node:os'
import * as z from 'zod'
import { deferred } from '../../contract/deferred.js'
import { SandboxError } from '../../contract/errors.js'
import { printed } from './entry-path.js'
import { refused } from './image-tree.js'

export interface ImageConfig {
  readonly env: Readonly<Record<string, string>>
  readonly user: string
  readonly workdir: string
  readonly entrypoint: readonly string[]
  readonly cmd: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  /** How commands that are one text are run: by a Dockerfile's SHELL. */
  readonly shell: readonly string[]
}

export const emptyConfig: ImageConfig = { env: {}, user: '', workdir: '', entrypoint: [], cmd: [], labels: {}, shell: ['/bin/sh', '-c'] }

const text = (): z.ZodString => z.string().max(128 * 1024)
const words = (): z.ZodType<string[] | null | undefined> => z.array(text()).max(1024).nullish()

/** Docker writes null where it means nothing, and much that is no concern of ours. */
const configSchema = deferred(() =>
  z.object({
    architecture: z.string().optional(),
    os: z.string().optional(),
    config: z
      .object({
        Env: words(),
        User: text().nullish(),
        WorkingDir: text().nullish(),
        Entrypoint: words(),
        Cmd: words(),
        Labels: z.record(z.string(), text()).nullish(),
        Shell: words(),
      })
      .nullish(),
    rootfs: z.object({ type: z.string().optional(), diff_ids: z.array(z.string().regex(/^sha256:[0-9a-f]{64}$/)).max(1024) }),
  }),
)

export interface ParsedConfig {
  readonly config: ImageConfig
  /** Of each layer, as it is unpacked. */
  readonly layers: readonly string[]
}

/** Node's words for what images call otherwise. */
const machines: Readonly<Record<string, string>> = {
  x64: 'amd64',
  arm64: 'arm64',
  arm: 'arm',
  ia32: '386',
  riscv64: 'riscv64',
  ppc64: 'ppc64le',
  s390x: 's390x',
}

/** As images call it. */
export function machineHere(): string {
  return machines[arch()] ?? arch()
}

/** Throws SandboxError: 'invalid' for what is no config, 'unsupported' for another machine's. */
export function parseConfig(json: Uint8Array): ParsedConfig {
  const { architecture, os, config, rootfs } = parseJson(configSchema, json, 'its config')
  if (os !== undefined && os !== '' && os !== 'linux') throw new SandboxError('unsupported', `the image is for ${printed(os)}, not for Linux`)
  if (architecture !== undefined && architecture !== '' && architecture !== machineHere())
    throw new SandboxError('unsupported', `the image is for ${printed(architecture)}, and this machine is ${machineHere()}`)
  return {
    layers: rootfs.diff_ids,
    config: {
      env: Object.fromEntries((config?.Env ?? []).map(envPair)),
      user: plain(config?.User ?? '', 'user'),
      workdir: folderOf(config?.WorkingDir ?? ''),
      entrypoint: config?.Entrypoint ?? [],
      cmd: config?.Cmd ?? [],
      labels: config?.Labels ?? {},
      shell: config?.Shell ?? emptyConfig.shell,
    },
  }
}

/** A document of an image; what is wrong with it is told by its path. */
export function parseJson<Schema extends z.ZodType>(schema: Schema, json: Uint8Array, what: string): z.output<Schema> {
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(json).toString('utf8'))
  } catch (error) {
    throw new SandboxError('invalid', `the image is refused: ${what} is no JSON`, { cause: error })
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw refused(`${what} is not as it must be: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`)
}

function envPair(line: string): [string, string] {
  const equals = line.indexOf('=')
  if (equals < 1 || line.includes('\0')) throw refused(`its variable ${printed(line)} has no name`)
  return [line.slice(0, equals), line.slice(equals + 1)]
}

function folderOf(path: string): string {
  if (path === '' || path === '/') return path
  if (path.includes('\0') || path.split('/').includes('..')) throw refused(`its working folder ${printed(path)} is none`)
  return `/${path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/')}`
}

function plain(value: string, what: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused here
  if (/[\u0000-\u001f\u007f]/.test(value) || value.length > 256) throw refused(`its ${what} has control characters`)
  return value
}
