import { templateBuilder } from '../../src/compose.js'
import { SandboxError } from '../../src/contract/errors.js'
import { busybox } from './busybox.js'

const machineCodes = ['unsupported', 'unavailable']

/** Builds the smallest template into a store. False, or the reason why no template can be built on this machine. */
export async function whyNotBuilt(templateDir: string): Promise<string | false> {
  try {
    await templateBuilder({ templateDir }).build(busybox)
    return false
  } catch (error) {
    if (error instanceof SandboxError && machineCodes.includes(error.code)) return error.message
    throw error
  }
}
