import { checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import { kindOf, plainObjectRefusal } from '../contract/plain-object.js'
import type { CallOptions, Platform } from '../contract/platform.js'
import type { SpecInput } from '../contract/spec.js'
import type { PlatformOptions } from './sandbox.js'

const platformFacets = ['changes', 'code', 'files', 'life', 'network', 'pools', 'ports', 'processes', 'snapshots'] as const
const platformMethods = ['create', 'info', 'list', 'start', 'limit', 'usage', 'receipt', 'close', 'closeAll'] as const

/** Undefined when none was given; what is no platform is refused. */
export function platformOf(options: PlatformOptions): Platform | undefined {
  return checkPlatform(checkCallOptions(options, ['signal', 'platform']).platform)
}

export function checkPlatform(platform: Platform | undefined): Platform | undefined {
  if (platform === undefined || isPlatform(platform)) return platform
  throw new SandboxError('invalid', `platform: expected a platform, such as createPlatform() makes, got ${kindOf(platform)}`)
}

function isPlatform(value: Partial<Platform> | null): boolean {
  if (typeof value !== 'object' || value === null) return false
  return platformMethods.every((name) => typeof value[name] === 'function') && platformFacets.every((name) => typeof value[name] === 'object')
}

export function callOptions(signal: AbortSignal | undefined): CallOptions {
  return signal === undefined ? {} : { signal }
}

/** What a sandbox is to be like, by the name that one-shots give it; of what is in it the platform is the judge. */
export function sandboxRefusal(sandbox: SpecInput = {}): SandboxError | undefined {
  return plainObjectRefusal(sandbox, 'sandbox')
}
