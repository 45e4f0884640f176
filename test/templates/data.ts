/** The template `data` for tests that need it: built once for this user, and used again by all that come after. */
import { templateBuilder } from '../../src/compose.js'
import { SandboxError } from '../../src/contract/errors.js'
import type { TemplateInfo } from '../../src/contract/templates.js'

/** How long a build may take on a machine that does something else at the same time. */
export const buildTimeoutMs = 20 * 60_000

/** `why`: what keeps this machine from having it. A test that is skipped for it prints the reason. */
export type DataTemplate = { readonly name: 'data'; readonly info: TemplateInfo; readonly why?: undefined } | { readonly name: 'data'; readonly why: string }

const machineCodes = ['unsupported', 'unavailable', 'full']

export async function dataTemplate(): Promise<DataTemplate> {
  const builder = templateBuilder()
  const there = (await builder.list()).find(({ name }) => name === 'data')
  if (there !== undefined && there.damaged === undefined) return { name: 'data', info: there }
  try {
    return { name: 'data', info: await builder.build('data') }
  } catch (error) {
    if (!(error instanceof SandboxError) || !machineCodes.includes(error.code)) throw error
    return { name: 'data', why: `template data cannot be built here: ${error.message}` }
  }
}

/** As `dataTemplate`, but an ordinary user does not wait for a second copy: what charts need is tried for them only where they have it already. */
export async function dataTemplateAtHand(): Promise<DataTemplate> {
  const isThere = (await templateBuilder().list()).some(({ name, damaged }) => name === 'data' && damaged === undefined)
  if (isThere || process.getuid?.() === 0) return dataTemplate()
  return { name: 'data', why: 'this user has not built the template data' }
}
