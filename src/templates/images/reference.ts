/** Names of images as people write them: `docker://debian:12`, `localhost:5000/team/app@sha256:…`. */
import { SandboxError } from '../../contract/errors.js'
import { printed } from './entry-path.js'
import { digestPattern } from './image-manifest.js'

export interface ImageReference {
  /** `host` or `host:port`. */
  readonly registry: string
  readonly repository: string
  /** A tag or a digest. */
  readonly version: string
  readonly isDigest: boolean
}

const usualRegistry = 'registry-1.docker.io'
const repositoryPattern = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/
const tagPattern = /^\w[\w.-]{0,127}$/
const hostPattern = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::\d{1,5})?$/

/** Throws SandboxError('invalid'). */
export function parseReference(text: string): ImageReference {
  const bare = text.replace(/^docker:\/\//, '')
  const [named, digest] = splitOnce(bare, '@')
  const slash = named.indexOf('/')
  const first = named.slice(0, slash)
  const hasHost = slash > 0 && (first.includes('.') || first.includes(':') || first === 'localhost')
  const registry = hasHost ? first : usualRegistry
  const rest = hasHost ? named.slice(slash + 1) : named
  const colon = rest.lastIndexOf(':')
  const path = colon === -1 ? rest : rest.slice(0, colon)
  const tag = colon === -1 ? 'latest' : rest.slice(colon + 1)
  const repository = hasHost || path.includes('/') ? path : `library/${path}`
  const isRight = isHost(registry) && repositoryPattern.test(repository) && repository.length <= 255 && tagPattern.test(tag)
  if (!isRight || (digest !== undefined && !digestPattern.test(digest)))
    throw new SandboxError('invalid', `'${printed(text)}' names no image`, { hint: 'glovebox template pull docker://HOST/NAME:TAG' })
  return { registry: registry === 'docker.io' ? usualRegistry : registry, repository, version: digest ?? tag, isDigest: digest !== undefined }
}

function isHost(text: string): boolean {
  const port = /:(\d+)$/.exec(text)?.[1]
  return hostPattern.test(text) && (port === undefined || (Number(port) >= 1 && Number(port) <= 65_535))
}

/** The whole of it, with its digest. */
export function pinned({ registry, repository }: ImageReference, digest: string): string {
  return `docker://${registry === usualRegistry ? 'docker.io' : registry}/${repository}@${digest}`
}

/** What a template is called when nobody says. */
export function nameOfImage({ repository, version, isDigest }: ImageReference): string {
  const last = repository.split('/').at(-1) ?? ''
  return isDigest || version === 'latest' ? last : `${last}-${version}`.toLowerCase()
}

/** Whether a registry is on this machine, so that nobody is in between. */
export function isLoopback(registry: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/.test(registry)
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator)
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}
