/** From a recipe to the verified packages that it is made of. What was downloaded stays, and is used again by the next build. */
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { SandboxError } from '../contract/errors.js'
import type { BuildEvent, Recipe, TemplatePackage } from '../contract/templates.js'
import { hasApt, hostSources, networkSettings, type PackageSource, runApt } from '../sys/apt.js'
import { installCommand } from '../sys/install-command.js'
import { hasUnpacker } from '../sys/unpack-package.js'

export interface VerifiedPackage extends TemplatePackage {
  readonly file: string
  readonly sha256: string
}

export interface PackageOrder {
  readonly recipe: Recipe
  /** Kept from build to build. */
  readonly folder: string
  readonly signal: AbortSignal | undefined
  readonly tell: (event: BuildEvent) => void
}

/** Where this machine has no sources of Debian's. */
const usualSources: readonly PackageSource[] = [
  { uri: 'http://deb.debian.org/debian', suite: 'bookworm', component: 'main' },
  { uri: 'http://deb.debian.org/debian', suite: 'bookworm-updates', component: 'main' },
  { uri: 'http://deb.debian.org/debian-security', suite: 'bookworm-security', component: 'main' },
]

/** Whose signature counts: the distribution's own, and nobody else's who may have a key on this machine. */
const keyrings: Readonly<Record<string, string>> = {
  debian: '/usr/share/keyrings/debian-archive-keyring.gpg',
  ubuntu: '/usr/share/keyrings/ubuntu-archive-keyring.gpg',
}
const components = ['main', 'universe']
const freshMs = 10 * 60_000

/** Sorted by name; every file is what the signed lists say. */
export async function fetchPackages(order: PackageOrder): Promise<VerifiedPackage[]> {
  const { tell, signal, recipe, folder } = order
  const config = await prepare(order)
  tell({ type: 'phase', phase: 'lists' })
  await refreshLists(order, config)
  tell({ type: 'phase', phase: 'choosing' })
  const wanted = ['install', '--yes', '--no-install-recommends', ...recipe.packages]
  // With an empty cache: apt does not name what it need not fetch.
  const empty = ['-o', `Dir::Cache::archives=${join(folder, 'none')}`]
  const chosen = parseUris(await runApt([...wanted, '--print-uris', ...empty], { config, signal }))
  if (chosen.length === 0) throw new SandboxError('unavailable', `the sources of apt here have nothing of what template ${recipe.name} needs`)
  await dropDamaged(join(folder, 'cache', 'archives'), chosen)
  tell({ type: 'phase', phase: 'downloading', detail: `${chosen.length} packages, ${megabytes(chosen)} MB` })
  const onProgress = (fraction: number): void => tell({ type: 'progress', phase: 'downloading', fraction })
  await runApt([...wanted, '--download-only'], { config, signal, onProgress })
  return verifyAll(order, chosen)
}

/** Says what is in the way of any build here. */
export function checkMachine(): void {
  if (process.platform !== 'linux') throw new SandboxError('unsupported', `templates are built on Linux, not on ${process.platform}`)
  if (!hasApt())
    throw new SandboxError('unsupported', "templates are built from Debian's packages, and this machine has no apt-get", { hint: installCommand('apt') })
  if (!hasUnpacker())
    throw new SandboxError('unsupported', 'templates are unpacked by dpkg-deb and tar, and this machine lacks one of them', {
      hint: installCommand('dpkg tar'),
    })
}

interface Chosen extends TemplatePackage {
  readonly file: string
  readonly size: number
  readonly sha256: string
}

/** `'URI' FILE SIZE SHA256:HASH`, one a line. */
export function parseUris(printed: string): Chosen[] {
  const lines = printed.split('\n').filter((line) => line.startsWith("'"))
  const chosen = lines.map((line) => {
    const match = /^'[^']+' (\S+) (\d+) SHA256:([0-9a-f]{64})$/.exec(line.trim())
    const [, file = '', size = '', sha256 = ''] = match ?? []
    const [name = '', version = ''] = file.split('_')
    if (match === null || file.includes('/')) throw new SandboxError('broken', `apt-get names a package without its hash: ${line.slice(0, 200)}`)
    return { name, version: decodeURIComponent(version), file, size: Number(size), sha256 }
  })
  return chosen.sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** A state of apt's own in the folder; resolves to its configuration. */
async function prepare({ recipe, folder }: PackageOrder): Promise<string> {
  for (const inner of ['state/lists/partial', 'cache/archives/partial', 'sources', 'none/partial'])
    mkdirSync(join(folder, inner), { recursive: true, mode: 0o755 })
  writeFileSync(join(folder, 'sources', 'glovebox.sources'), await sourcesHere())
  writeFileSync(join(folder, 'status'), statusText(recipe.without))
  for (const name of readdirSync(folder)) if (isLeftByApt(name)) rmSync(join(folder, name), { force: true })
  const config = join(folder, 'apt.conf')
  writeFileSync(config, configText(folder, await networkSettings()))
  return config
}

/** To apt these are installed already, so that neither they nor what only they need is fetched. */
function statusText(names: readonly string[]): string {
  const fields = ['Status: install ok installed', 'Architecture: all', 'Multi-Arch: foreign', 'Version: 9999', 'Maintainer: none', 'Description: left out']
  return names.map((name) => `${[`Package: ${name}`, ...fields].join('\n')}\n`).join('\n')
}

/** What one that was killed checked signatures with. */
const isLeftByApt = (name: string): boolean => /^apt\.(?:conf|data|sig)\../.test(name)

function configText(folder: string, network: readonly string[]): string {
  const nowhere = join(folder, 'none')
  const settings = {
    'Dir::Etc::parts': nowhere,
    'Dir::Etc::main': nowhere,
    'Dir::Etc::sourcelist': nowhere,
    'Dir::Etc::sourceparts': join(folder, 'sources'),
    'Dir::Etc::preferences': nowhere,
    'Dir::Etc::preferencesparts': nowhere,
    'Dir::State': join(folder, 'state'),
    'Dir::State::status': join(folder, 'status'),
    'Dir::Cache': join(folder, 'cache'),
    'Dir::Log': join(folder, 'log'),
    'Acquire::Languages': 'none',
    'Acquire::ForceHash': 'SHA256',
    'Acquire::Retries': '3',
    'Acquire::GzipIndexes': 'true',
    'Acquire::AllowInsecureRepositories': 'false',
    'Acquire::AllowWeakRepositories': 'false',
    'Acquire::AllowDowngradeToInsecureRepositories': 'false',
    'APT::Get::AllowUnauthenticated': 'false',
    'APT::Update::Error-Mode': 'any',
    'APT::Keep-Downloaded-Packages': 'true',
  }
  return `${[...network, ...Object.entries(settings).map(([name, value]) => `${name} "${value}";`)].join('\n')}\n`
}

/** Without the net, what was fetched before may still do. */
async function refreshLists({ folder, signal, tell }: PackageOrder, config: string): Promise<void> {
  const stamp = join(folder, 'refreshed')
  const sources = readFileSync(join(folder, 'sources', 'glovebox.sources'), 'utf8')
  if (isFresh(stamp, sources)) return
  try {
    rmSync(stamp, { force: true })
    await runApt(['update'], { config, signal, onProgress: (fraction) => tell({ type: 'progress', phase: 'lists', fraction }) })
    writeFileSync(stamp, sources)
  } catch (error) {
    const kept = (await readdir(join(folder, 'state', 'lists'))).filter((name) => name.includes('_Packages'))
    if (!(error instanceof SandboxError) || kept.length === 0) throw error
    tell({ type: 'note', text: `${error.message}; going on with the lists of packages from before` })
  }
}

/** The lists were read a moment ago, from the same sources. */
function isFresh(stamp: string, sources: string): boolean {
  const status = statSync(stamp, { throwIfNoEntry: false })
  return status !== undefined && Math.abs(Date.now() - status.mtimeMs) < freshMs && readFileSync(stamp, 'utf8') === sources
}

/** The machine's own where it is Debian or Ubuntu; of them only what is the distribution's. */
async function sourcesHere(): Promise<string> {
  const system = osRelease()
  const keyring = keyrings[system.ID ?? '']
  const own = (await hostSources()).filter(({ suite, component }) => isOfSystem(suite, system.VERSION_CODENAME) && components.includes(component))
  const isUsual = own.length === 0 || keyring === undefined
  const signedBy = isUsual ? keyrings.debian : keyring
  if (signedBy === undefined || !existsSync(signedBy))
    throw new SandboxError('unsupported', `the keys by which Debian signs its packages are not on this machine (${signedBy})`, {
      hint: installCommand(isUsual ? 'debian-archive-keyring' : `${system.ID}-keyring`),
    })
  const sources = isUsual ? usualSources : own
  return sources.map((source) => sourceText(source, signedBy)).join('\n')
}

function sourceText({ uri, suite, component }: PackageSource, signedBy: string): string {
  return `Types: deb\nURIs: ${uri}\nSuites: ${suite}\nComponents: ${component}\nSigned-By: ${signedBy}\n`
}

function isOfSystem(suite: string, codename: string | undefined): boolean {
  return codename !== undefined && ['', '-updates', '-security', '/updates'].some((suffix) => suite === `${codename}${suffix}`)
}

function osRelease(): Record<string, string> {
  const text = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : ''
  return Object.fromEntries([...text.matchAll(/^([A-Z_]+)="?([^"\n]*)"?$/gm)].map(([, name = '', value = '']) => [name, value]))
}

/** apt takes a file of the right size for the right one, and never looks again. */
async function dropDamaged(archives: string, chosen: readonly Chosen[]): Promise<void> {
  for (const { file, size, sha256 } of chosen) {
    const path = join(archives, file)
    const status = await stat(path).catch(() => undefined)
    if (status !== undefined && (status.size !== size || (await hashOf(path)) !== sha256)) await rm(path, { force: true })
  }
}

async function verifyAll({ folder, tell, signal }: PackageOrder, chosen: readonly Chosen[]): Promise<VerifiedPackage[]> {
  tell({ type: 'phase', phase: 'verifying' })
  const verified: VerifiedPackage[] = []
  for (const [index, { name, version, file, sha256 }] of chosen.entries()) {
    signal?.throwIfAborted()
    const path = join(folder, 'cache', 'archives', file)
    if ((await hashOf(path)) !== sha256) throw new SandboxError('broken', `${file} is not what Debian's signed list says`, { hint: `rm ${path}` })
    verified.push({ name, version, file: path, sha256 })
    tell({ type: 'progress', phase: 'verifying', fraction: (index + 1) / chosen.length })
  }
  return verified
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

function megabytes(chosen: readonly Chosen[]): string {
  return (chosen.reduce((sum, { size }) => sum + size, 0) / 1e6).toFixed(0)
}
