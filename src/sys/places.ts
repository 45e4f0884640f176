import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import { folderError } from './folder-error.js'

/** What decides where things are kept; read from the process unless told otherwise. */
export interface PlaceFacts {
  readonly uid: number
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string
  isWritable(folder: string): boolean
}

const elsewhere = 'export GLOVEBOX_CACHE_DIR="$(mktemp -d)" GLOVEBOX_STATE_DIR="$(mktemp -d)"'
const changesElsewhere = 'export GLOVEBOX_CHANGES_DIR="$(mktemp -d)"'
const keysElsewhere = 'export GLOVEBOX_KEY_DIR="$(mktemp -d)"'
const templatesElsewhere = 'export GLOVEBOX_TEMPLATE_DIR="$(mktemp -d)"'
const snapshotsElsewhere = 'export GLOVEBOX_SNAPSHOT_DIR="$(mktemp -d)"'

/** Where a running engine keeps its records: gone after a reboot where the system offers that. Created 0700. */
export function statePlace(facts: PlaceFacts = processFacts()): string {
  return ownFolder(stateFolder(facts), facts)
}

/** Where what can be built again is kept. Created 0700. */
export function cachePlace(facts: PlaceFacts = processFacts()): string {
  return ownFolder(cacheFolder(facts), facts)
}

/** Where the key is kept that signs receipts: still there after a reboot. Created 0700. */
export function keyPlace(facts: PlaceFacts = processFacts()): string {
  return ownFolder(keyFolder(facts), facts, keysElsewhere)
}

/** Where snapshots are kept: still there after a reboot, and until somebody removes them. Created 0700. */
export function snapshotPlace(facts: PlaceFacts = processFacts()): string {
  return ownFolder(snapshotFolder(facts), facts, snapshotsElsewhere)
}

/** Where built templates are kept: still there after a reboot, and until somebody removes them. Created 0700. */
export function templatePlace(facts: PlaceFacts = processFacts()): string {
  return ownFolder(templateFolder(facts), facts, templatesElsewhere)
}

/** Where changes wait to be applied: still there after a reboot. Created 0700. */
export function changesPlace(facts: PlaceFacts = processFacts()): string {
  return ownFolder(changesFolder(facts), facts, changesElsewhere)
}

export function stateFolder(facts: PlaceFacts): string {
  // Root's records say which host ids are taken. Engines that kept them apart would hand out the same ids twice, so this place cannot be moved.
  if (facts.uid === 0) return facts.isWritable('/run') ? '/run/glovebox' : '/var/lib/glovebox-run'
  if (facts.env.GLOVEBOX_STATE_DIR) return facts.env.GLOVEBOX_STATE_DIR
  const runtime = facts.env.XDG_RUNTIME_DIR
  if (runtime && facts.isWritable(runtime)) return join(runtime, 'glovebox')
  return join(facts.home, '.cache', 'glovebox', 'run')
}

export function cacheFolder(facts: PlaceFacts): string {
  if (facts.env.GLOVEBOX_CACHE_DIR) return facts.env.GLOVEBOX_CACHE_DIR
  if (facts.uid === 0) return '/var/cache/glovebox'
  return join(facts.env.XDG_CACHE_HOME || join(facts.home, '.cache'), 'glovebox')
}

export function keyFolder(facts: PlaceFacts = processFacts()): string {
  // Root's too: a key that is kept elsewhere signs as somebody else, and takes nothing from anyone.
  if (facts.env.GLOVEBOX_KEY_DIR) return facts.env.GLOVEBOX_KEY_DIR
  if (facts.uid === 0) return '/var/lib/glovebox'
  return join(facts.env.XDG_DATA_HOME || join(facts.home, '.local', 'share'), 'glovebox')
}

export function snapshotFolder(facts: PlaceFacts = processFacts()): string {
  if (facts.env.GLOVEBOX_SNAPSHOT_DIR) return facts.env.GLOVEBOX_SNAPSHOT_DIR
  if (facts.uid === 0) return '/var/lib/glovebox/snapshots'
  return join(facts.env.XDG_DATA_HOME || join(facts.home, '.local', 'share'), 'glovebox', 'snapshots')
}

export function templateFolder(facts: PlaceFacts = processFacts()): string {
  if (facts.env.GLOVEBOX_TEMPLATE_DIR) return facts.env.GLOVEBOX_TEMPLATE_DIR
  if (facts.uid === 0) return '/var/lib/glovebox/templates'
  return join(facts.env.XDG_DATA_HOME || join(facts.home, '.local', 'share'), 'glovebox', 'templates')
}

/** Where what was typed in sessions is kept: still there after a reboot. Created 0700. */
export function historyPlace(facts: PlaceFacts = processFacts()): string {
  return ownFolder(historyFolder(facts), facts, 'export GLOVEBOX_HISTORY_DIR="$(mktemp -d)"')
}

export function historyFolder(facts: PlaceFacts): string {
  if (facts.env.GLOVEBOX_HISTORY_DIR) return facts.env.GLOVEBOX_HISTORY_DIR
  if (facts.uid === 0) return '/var/lib/glovebox/history'
  return join(facts.env.XDG_STATE_HOME || join(facts.home, '.local', 'state'), 'glovebox', 'history')
}

/** Where keys, tenants and the audit trail are kept: still there after a reboot. Created 0700. */
export function serverPlace(facts: PlaceFacts = processFacts()): string {
  return ownFolder(serverFolder(facts), facts, 'export GLOVEBOX_SERVER_DIR="$(mktemp -d)"')
}

export function serverFolder(facts: PlaceFacts = processFacts()): string {
  if (facts.env.GLOVEBOX_SERVER_DIR) return facts.env.GLOVEBOX_SERVER_DIR
  if (facts.uid === 0) return '/var/lib/glovebox/server'
  return join(facts.env.XDG_STATE_HOME || join(facts.home, '.local', 'state'), 'glovebox', 'server')
}

export function changesFolder(facts: PlaceFacts): string {
  if (facts.env.GLOVEBOX_CHANGES_DIR) return facts.env.GLOVEBOX_CHANGES_DIR
  if (facts.uid === 0) return '/var/lib/glovebox/changes'
  return join(facts.env.XDG_STATE_HOME || join(facts.home, '.local', 'state'), 'glovebox', 'changes')
}

/** A folder of ours within one. */
export function ownPart(folder: string, name: string, facts: PlaceFacts = processFacts()): string {
  return ownFolder(join(folder, name), facts)
}

/** All of the above, whether they are there or not, and root's whoever asks: nobody else has any business there. */
export function ownPlaces(facts: PlaceFacts = processFacts()): string[] {
  const places = [
    stateFolder(facts),
    cacheFolder(facts),
    keyFolder(facts),
    changesFolder(facts),
    historyFolder(facts),
    serverFolder(facts),
    snapshotFolder(facts),
    templateFolder(facts),
    '/run/glovebox',
    '/var/lib/glovebox-run',
    '/var/cache/glovebox',
    '/var/lib/glovebox',
  ]
  return [...new Set(places.filter((place) => isAbsolute(place)))]
}

export function processFacts(): PlaceFacts {
  return { uid: process.getuid?.() ?? -1, env: process.env, home: homedir(), isWritable }
}

export interface GivenPlaces {
  readonly cacheDir?: string | undefined
  readonly snapshotDir?: string | undefined
  readonly templateDir?: string | undefined
}

/** Those of this process, but for what was said to be elsewhere. */
export function placesWith({ cacheDir, snapshotDir, templateDir }: GivenPlaces): PlaceFacts {
  const facts = processFacts()
  const given = Object.entries({ GLOVEBOX_CACHE_DIR: cacheDir, GLOVEBOX_SNAPSHOT_DIR: snapshotDir, GLOVEBOX_TEMPLATE_DIR: templateDir })
  return { ...facts, env: { ...facts.env, ...Object.fromEntries(given.filter(([, folder]) => folder !== undefined)) } }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}

const writableByOthers = 0o022

/** What others could change under us is refused rather than used. */
function ownFolder(folder: string, facts: PlaceFacts, hint = elsewhere): string {
  if (!isAbsolute(folder)) throw new SandboxError('unavailable', `${folder} is not an absolute path`, { hint })
  try {
    makeFolders(folder)
  } catch (error) {
    throw folderError(folder, error, hint)
  }
  const { uid, mode } = statSync(folder)
  if (facts.uid >= 0 && uid !== facts.uid) throw new SandboxError('unavailable', `${folder} belongs to uid ${uid}, not to uid ${facts.uid}`, { hint })
  if (mode & writableByOthers) throw new SandboxError('unavailable', `${folder} can be written by others`, { hint: `chmod go-w ${folder}` })
  return folder
}

/** One by one: Node's own way never ends where the system says that a folder to be made is missing, as /proc does. */
function makeFolders(folder: string): void {
  if (existsSync(folder)) return
  const parent = dirname(folder)
  if (parent !== folder) makeFolders(parent)
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Another engine was faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
