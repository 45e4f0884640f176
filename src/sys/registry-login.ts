/** Who we are to a registry: what the environment says, or else what `docker login` wrote for this very host. No program is asked. */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import * as z from 'zod'
import { deferred } from '../contract/deferred.js'
import { SandboxError } from '../contract/errors.js'

export interface RegistryLogin {
  readonly user: string
  readonly secret: string
}

const configSchema = deferred(() => z.object({ auths: z.record(z.string(), z.object({ auth: z.string().optional() })).optional() }))

/** How Docker's own registry is called in that file. */
const dockerNames = ['https://index.docker.io/v1/', 'index.docker.io', 'docker.io']

/** Undefined: nobody in particular. */
export function registryLogin(registry: string, env: NodeJS.ProcessEnv = process.env): RegistryLogin | undefined {
  const { GLOVEBOX_REGISTRY_USER: user, GLOVEBOX_REGISTRY_PASSWORD: secret } = env
  if (user !== undefined && secret !== undefined) return { user, secret }
  const path = join(env.DOCKER_CONFIG ?? join(homedir(), '.docker'), 'config.json')
  const auths = readAuths(path)
  const names = registry === 'registry-1.docker.io' ? [registry, ...dockerNames] : [registry, `https://${registry}`, `http://${registry}`]
  const written = names.map((name) => auths[name]?.auth).find((auth) => auth !== undefined && auth !== '')
  return written === undefined ? undefined : decoded(written, path)
}

function readAuths(path: string): Readonly<Record<string, { readonly auth?: string | undefined }>> {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return {}
  }
  try {
    return configSchema.parse(JSON.parse(text)).auths ?? {}
  } catch (error) {
    throw new SandboxError('invalid', `${path} is not what 'docker login' writes`, { cause: error })
  }
}

function decoded(auth: string, path: string): RegistryLogin {
  const text = Buffer.from(auth, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  if (colon < 1) throw new SandboxError('invalid', `${path} has a login that cannot be read`)
  return { user: text.slice(0, colon), secret: text.slice(colon + 1).replace(/\0+$/, '') }
}
