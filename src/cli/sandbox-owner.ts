/**
 * A sandbox that a command made for itself in a daemon bears the command's name: it does not last, so no other command lists or finds it, and when the command was killed the
 * daemon closes it.
 */
import { currentOwner, isAlive, ownerName, parseOwner } from '../compose.js'
import type { Platform, SandboxFilter, SandboxInfo } from '../contract/platform.js'

const key = 'glovebox.command'

/** Metadata of what this command makes for itself. */
export function ownMark(): Readonly<Record<string, string>> {
  return { [key]: ownerName(currentOwner()) }
}

/** Those that last, of those that match. */
export async function* lastingSandboxes(
  platform: Pick<Platform, 'list'>,
  filter: SandboxFilter,
  signal: AbortSignal,
): AsyncGenerator<SandboxInfo, void, undefined> {
  for await (const info of platform.list(filter, { signal })) if (info.spec.metadata[key] === undefined) yield info
}

/** Whether the command that it was made for is gone, and nobody else knows of it. */
export function isAbandoned({ spec }: SandboxInfo): boolean {
  const owner = parseOwner(spec.metadata[key] ?? '')
  return owner !== undefined && !isAlive(owner)
}
