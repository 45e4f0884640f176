/**
 * How a template comes about: packages are fetched and verified, unpacked into a draft, finished in a cell, written down entry by entry, tried, and only then given
 * their name. Whatever happens on the way, nobody sees half of one: what is left of it is a draft without an owner, which the next build sweeps.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdir, rm, statfs, writeFile } from 'node:fs/promises'
import { arch } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TemplateRoot } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { BuildEvent, BuildOptions, BuildResult, Recipe, TemplateInfo } from '../contract/templates.js'
import { folderError } from '../sys/folder-error.js'
import { syncTree } from '../sys/sync-tree.js'
import { removeTree } from '../sys/tree-removal.js'
import { checkMachine, fetchPackages, type VerifiedPackage } from './build-packages.js'
import { makeTree, shellOf } from './build-tree.js'
import { compilePython } from './bytecode.js'
import { rootOf } from './built-root.js'
import { findLanguages } from './images/languages.js'
import { readTree, settleModes, writeManifest } from './manifest.js'
import { recordFile, recordText } from './record.js'
import { damageOf, seal, type TemplateStore } from './store.js'
import { type Bench, openBench, type Workshop } from './workshop.js'

/** Raised when the same packages make something else. */
const edition = '1'
const lookAgainMs = 250

export interface BuildTools {
  readonly store: TemplateStore
  readonly workshop: Workshop
}

interface Building extends BuildTools {
  readonly recipe: Recipe
  readonly signal: AbortSignal | undefined
  readonly tell: (event: BuildEvent) => void
}

export async function buildTemplate(recipe: Recipe, tools: BuildTools, options: BuildOptions = {}): Promise<BuildResult> {
  const began = Date.now()
  const { signal, onEvent = () => undefined } = options
  const building: Building = { ...tools, recipe, signal, tell: onEvent }
  checkMachine()
  using _lock = await takeTurn(building)
  await tools.store.sweep()
  await checkRoom(building)
  const packages = await fetchPackages({ recipe, folder: tools.store.part('packages'), signal, tell: onEvent })
  const inputs = inputsOf(recipe, packages)
  const known = options.again === true ? undefined : wholeTemplate(building, inputs)
  const info = known ?? (await buildNew(building, packages, inputs))
  return { ...info, wasThere: known !== undefined, tookMs: Date.now() - began }
}

/** One builder at a time: the others wait, and are told so. */
export async function takeTurn({ store, signal, tell }: Pick<Building, 'store' | 'signal' | 'tell'>): Promise<Disposable> {
  for (let told = false; ; told = true) {
    signal?.throwIfAborted()
    try {
      return store.lock()
    } catch (error) {
      if (!(error instanceof SandboxError) || error.code !== 'busy') throw error
      if (!told) tell({ type: 'phase', phase: 'waiting', detail: error.message })
      await sleep(lookAgainMs, undefined, signal ? { signal } : {}).catch(() => undefined)
    }
  }
}

async function checkRoom({ store, recipe }: Building): Promise<void> {
  const place = store.part('drafts')
  const { bavail, bsize } = await statfs(place)
  const free = bavail * bsize
  if (free >= recipe.diskBytes) return
  const mebibytes = (bytes: number): number => Math.ceil(bytes / 2 ** 20)
  throw new SandboxError(
    'full',
    `template ${recipe.name} needs ${mebibytes(recipe.diskBytes)} MiB of disk while it is built, and ${mebibytes(free)} MiB are free in ${place}`,
    {
      hint: `df -h ${place}`,
    },
  )
}

function inputsOf(recipe: Recipe, packages: readonly VerifiedPackage[]): string {
  const all = { edition, recipe, arch: arch(), packages: packages.map(({ name, version, sha256 }) => [name, version, sha256]) }
  return `sha256:${createHash('sha256').update(JSON.stringify(all)).digest('hex')}`
}

/** What is there already and is what would be built. */
function wholeTemplate({ store, recipe }: Building, inputs: string): TemplateInfo | undefined {
  try {
    const stored = store.find(recipe.name)
    return stored?.info.inputs === inputs && damageOf(stored.object) === undefined ? stored.info : undefined
  } catch {
    return undefined
  }
}

async function buildNew(building: Building, packages: readonly VerifiedPackage[], inputs: string): Promise<TemplateInfo> {
  const { store, recipe, signal, tell } = building
  const draft = store.newDraft()
  try {
    const root = join(draft, 'root')
    await mkdir(root)
    await makeTree({ recipe, packages, root, signal, tell })
    const python = await finish(building, root)
    const described = await describe(building, draft, { packages, inputs, python })
    await check(building, root)
    const info = { ...described, languages: await findLanguages(draftRoot(recipe, root), { workshop: building.workshop, signal }) }
    tell({ type: 'phase', phase: 'keeping' })
    await writeFile(join(draft, recordFile), recordText(info), { mode: 0o600 })
    await chmod(draft, 0o700)
    await syncTree(draft)
    await seal(draft)
    await store.publish(recipe.name, draft, info)
    return info
  } catch (error) {
    throw error instanceof SandboxError || signal?.aborted === true ? error : machineError(draft, error)
  } finally {
    await removeTree(draft)
  }
}

/** What the machine lacks, in words. */
export function machineError(draft: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT') return new SandboxError('full', `no space is left in ${draft}`, { hint: `df -h ${draft}`, cause: error })
  return code === undefined ? error : folderError(draft, error)
}

/** What Debian's scripts would do with programs of the packages is done by those programs in a cell. Resolves to the version of Python, if there is one. */
async function finish({ workshop, recipe, signal, tell }: Building, root: string): Promise<string | undefined> {
  tell({ type: 'phase', phase: 'finishing' })
  await settleModes(root, { signal })
  await using bench = await openBench(workshop, draftRoot(recipe, root), { signal })
  if (existsSync(join(root, 'usr/sbin/ldconfig'))) await cacheLibraries(bench, root)
  if (!existsSync(join(root, 'usr/bin/python3'))) return undefined
  tell({ type: 'progress', phase: 'finishing', fraction: 0.1, detail: 'compiling Python' })
  await compilePython(bench, root)
  return (await printed(bench, ['python3', '-I', '-c', 'import platform; print(platform.python_version())'])).toString('utf8').trim()
}

async function cacheLibraries(bench: Bench, root: string): Promise<void> {
  const command = ['sh', '-c', 'ldconfig -i -X -C /tmp/ld.so.cache && cat /tmp/ld.so.cache'] as const
  const cache = await printed(bench, command)
  await rm(join(root, 'etc/ld.so.cache'), { force: true })
  await writeFile(join(root, 'etc/ld.so.cache'), cache, { flag: 'wx' })
}

async function printed(bench: Bench, argv: readonly [string, ...string[]]): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  const { failure } = await bench.run(argv, (bytes) => void pieces.push(bytes))
  if (failure !== undefined) throw new SandboxError('broken', `${argv[0]} did not do its part in the template: ${failure}`)
  return Buffer.concat(pieces)
}

interface Known {
  readonly packages: readonly VerifiedPackage[]
  readonly inputs: string
  readonly python: string | undefined
}

async function describe({ recipe, signal, tell }: Building, draft: string, { packages, inputs, python }: Known): Promise<TemplateInfo> {
  const root = join(draft, 'root')
  tell({ type: 'phase', phase: 'hashing' })
  await settleModes(root, { signal })
  const shell = shellOf(root)
  const lines = await readTree(root, { signal, onEntry: (count) => tell({ type: 'progress', phase: 'hashing', fraction: NaN, detail: `${count} entries` }) })
  const manifest = writeManifest(lines, { shell, env: recipe.env })
  await writeFile(join(draft, 'manifest'), manifest.text, { mode: 0o600 })
  return {
    name: recipe.name,
    id: manifest.id,
    recipe: recipe.name,
    summary: recipe.summary,
    builtAt: new Date().toISOString(),
    bytes: manifest.bytes,
    entries: manifest.entries,
    shell,
    env: recipe.env,
    system: systemOf(root),
    arch: arch(),
    ...(python !== undefined && { python }),
    packages: packages.map(({ name, version }) => ({ name, version })),
    inputs,
  }
}

async function check({ workshop, recipe, signal, tell }: Building, root: string): Promise<void> {
  tell({ type: 'phase', phase: 'checking' })
  await using bench = await openBench(workshop, draftRoot(recipe, root), { signal })
  for (const [index, argv] of recipe.checks.entries()) {
    const { failure } = await bench.run(argv)
    if (failure !== undefined)
      throw new SandboxError('broken', `template ${recipe.name} does not pass its check '${argv.join(' ').trim().slice(0, 120)}': ${failure}`)
    tell({ type: 'progress', phase: 'checking', fraction: (index + 1) / recipe.checks.length })
  }
}

function draftRoot(recipe: Recipe, root: string): TemplateRoot {
  return rootOf({ name: recipe.name, root, shell: shellOf(root), env: recipe.env })
}

function systemOf(root: string): string {
  const path = join(root, 'usr/lib/os-release')
  return (existsSync(path) ? /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(readFileSync(path, 'utf8'))?.[1] : undefined) ?? 'unknown'
}
