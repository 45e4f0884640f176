import type { SandboxInfo } from '../../contract/platform.js'
import { withPlatform } from '../choose-platform.js'
import { exitCodes } from '../exit-codes.js'
import { printJson } from '../print.js'
import { findSandbox } from '../sandbox-reference.js'

export interface LifeFlags {
  readonly json?: true
}

export interface PauseFlags extends LifeFlags {
  /** False with --no-memory. */
  readonly memory?: boolean
}

/** Everything in each of them stands still. Quiet when it does already. */
export async function pause(sandboxes: readonly string[], flags: PauseFlags): Promise<number> {
  return withPlatform('kept', async ({ platform, signal }) => {
    const found = await Promise.all(sandboxes.map((sandbox) => findSandbox(platform, sandbox, signal)))
    return tell(await inOrder(found, ({ id }) => platform.life.pause(id, { memory: flags.memory !== false, signal })), flags)
  })
}

/** And goes on. */
export async function resume(sandboxes: readonly string[], flags: LifeFlags): Promise<number> {
  return withPlatform('kept', async ({ platform, signal }) => {
    const found = await Promise.all(sandboxes.map((sandbox) => findSandbox(platform, sandbox, signal)))
    return tell(await inOrder(found, ({ id }) => platform.life.resume(id, { signal })), flags)
  })
}

async function inOrder(found: readonly SandboxInfo[], act: (info: SandboxInfo) => Promise<SandboxInfo>): Promise<SandboxInfo[]> {
  const done: SandboxInfo[] = []
  for (const info of found) done.push(await act(info))
  return done
}

async function tell(sandboxes: readonly SandboxInfo[], { json }: LifeFlags): Promise<number> {
  if (json) await printJson({ sandboxes })
  return exitCodes.ok
}
