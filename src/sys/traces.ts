import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAlive, parseOwner } from './owner.js'
import { cacheFolder, changesFolder, historyFolder, keyFolder, type PlaceFacts, processFacts, snapshotFolder, stateFolder, templateFolder } from './places.js'

const ownerPattern = /\d+\.\d+\.\d+\.[0-9a-f]{32}/

/** Whether a dead process has its name where things of ours lie: a look at a dozen folders, so that nobody waits for more where nothing is left. */
export function hasTracesOfDead(facts: PlaceFacts = processFacts()): boolean {
  const alive = new Map<string, boolean>()
  return foldersOf(facts).some((folder) => namesIn(folder).some((name) => isOfDead(name, alive)))
}

function isOfDead(name: string, alive: Map<string, boolean>): boolean {
  const text = ownerPattern.exec(name)?.[0]
  if (text === undefined) return false
  const owner = parseOwner(text)
  if (!alive.has(text)) alive.set(text, owner === undefined || isAlive(owner))
  return alive.get(text) === false
}

function foldersOf(facts: PlaceFacts): string[] {
  const [state, cache, snapshots, templates] = [stateFolder(facts), cacheFolder(facts), snapshotFolder(facts), templateFolder(facts)]
  const changes = changesFolder(facts)
  return [
    ...['cells', 'bundles', 'notes', 'daemon', 'daemon/locks'].map((name) => join(state, name)),
    ...['', 'trials', 'templates', 'packages/drafts', 'seccomp', 'programs'].map((name) => join(cache, name)),
    ...['drafts', 'names'].map((name) => join(snapshots, name)),
    ...['drafts', 'blobs', 'locks', 'steps/drafts'].map((name) => join(templates, name)),
    ...[changes, join(changes, 'locks'), keyFolder(facts), historyFolder(facts), tmpdir()],
  ]
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
