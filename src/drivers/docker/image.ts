/**
 * The image of every cell: our two programs and empty folders to mount onto, nothing else. What a template shows is bound into it, because a template of this machine
 * is this machine's files; so one small image serves them all, and there is nothing to fetch from anywhere.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { wardenPath, workdir } from '../../cell/arguments.js'
import { diskPlace } from '../../cell/gvisor/warden-words.js'
import type { TemplateRoot } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { nativeProgram } from '../../sys/native.js'
import { type EngineCall, EngineError, type EngineClient } from '../../sys/docker/client.js'
import { packed } from '../../sys/pack.js'
import { encodeHeader, paddingOf, type TarHeader } from '../../sys/tar-header.js'

/** Where things are in the container, before the cell is built out of them. */
export const inContainer = {
  launcher: '/launcher',
  warden: '/warden',
  template: '/template',
  groups: '/groups',
  mounts: '/mounts',
  certificates: '/certificates.pem',
} as const

/** Where each folder of the template is in the container. */
export function templatePlace(index: number): string {
  return `${inContainer.template}/${index}`
}

/** Podman takes a name without a host for one of a registry's. */
const repository = 'localhost/glovebox-cell'
/** What the engine and the launcher mount onto; the launcher makes the root of the cell in the last. */
const folders = ['dev', 'etc', 'proc', 'sys', inContainer.template.slice(1), inContainer.groups.slice(1), inContainer.mounts.slice(1), 'tmp', 'tmp/.root']
const importMs = 120_000
/** Of gigabytes, over a network. */
const sendMs = 1_800_000
/** Two blocks of zeros. */
const endBytes = 1024

export interface ContainerPrograms {
  readonly launcher: string
  readonly warden: string
}

/** Its name, once the engine has it. Its tag is its content, so that another build of ours is another image. */
export async function importImage(engine: EngineClient, programs: Partial<ContainerPrograms> = {}): Promise<string> {
  const archive = imageArchive(programs)
  return bring(engine, tagOf(archive), () => ({ archive, timeoutMs: importMs }))
}

/**
 * The same with all that a built template holds, for an engine that cannot reach it: sent once, and known by the template's content. Throws SandboxError('unsupported') for
 * a template that is made of what this machine has.
 */
export async function importTemplate(engine: EngineClient, root: TemplateRoot, programs: Partial<ContainerPrograms> = {}): Promise<string> {
  const archive = imageArchive(programs)
  if (root.binds.length === 0) return bring(engine, tagOf(archive), () => ({ archive, timeoutMs: importMs }))
  if (root.id === undefined) {
    const why = `template ${root.name} is made of folders of this machine, which the engine of another has not; one that was built or pulled is sent there`
    throw new SandboxError('unsupported', why, { hint: 'glovebox template pull docker://docker.io/library/python:3-slim --name mine' })
  }
  const layout = JSON.stringify(root.binds.map(({ target }) => target))
  const tag = tagOf(Buffer.from(`${tagOf(archive)} ${root.id} ${layout}`))
  return bring(engine, tag, () => ({ archive: templateArchive(archive, root), timeoutMs: sendMs }))
}

function tagOf(archive: Buffer): string {
  return createHash('sha256').update(archive).digest('hex').slice(0, 32)
}

async function bring(engine: EngineClient, tag: string, order: () => EngineCall): Promise<string> {
  const name = `${repository}:${tag}`
  if (await isThere(engine, name)) return name
  const query = { fromSrc: '-', repo: name, changes: `LABEL glovebox.image=${tag}` }
  await engine.call('POST', '/images/create', { ...order(), query })
  return name
}

/** What we have made, without its end, and then what `tar` makes of the folders of the template, each by the name that it would be bound at. */
function templateArchive(own: Buffer, { binds }: TemplateRoot): Readable {
  const names = binds.map(({ source }, index) => ({ from: source.slice(1), to: templatePlace(index).slice(1) }))
  // The longest first, so that what lies in another is not taken for a part of it.
  const sorted = names.toSorted((one, other) => other.from.length - one.from.length)
  const renaming = sorted.map(({ from, to }) => `--transform=s,^${from.replace(/[\\.*^$[\],]/g, '\\$&')},${to},S`)
  const argv = ['--create', '--file=-', '--format=pax', '--numeric-owner', '--sparse', ...renaming, '-C', '/', '--', ...names.map(({ from }) => from)]
  return Readable.from(joined(own.subarray(0, own.length - endBytes), packed(argv)))
}

async function* joined(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield first
  yield* rest
}

async function isThere(engine: EngineClient, name: string): Promise<boolean> {
  try {
    await engine.call('GET', `/images/${name}/json`)
    return true
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return false
    throw error
  }
}

function imageArchive({ launcher = nativeProgram('launcher'), warden = nativeProgram('warden') }: Partial<ContainerPrograms>): Buffer {
  const entries = [
    ...folders.map((name) => entry({ type: 'folder', name: `${name}/`, mode: 0o755 })),
    ...[
      [inContainer.launcher, launcher],
      [inContainer.warden, warden],
    ].map(([path, source]) => entry({ type: 'file', name: (path as string).slice(1), mode: 0o555, content: readFileSync(source as string) })),
  ]
  return Buffer.concat([...entries, Buffer.alloc(endBytes)])
}

/**
 * Of a container that is the cell itself, with what a template has beside the folders that are bound: its links, and places to mount onto. Named by its content, and asked
 * for once.
 */
export function createSandboxImages(engine: EngineClient, { warden = nativeProgram('warden') }: Partial<ContainerPrograms> = {}) {
  const brought = new Map<string, Promise<string>>()
  return ({ folders: own = [], symlinks }: Pick<TemplateRoot, 'folders' | 'symlinks'>): Promise<string> => {
    const layout = JSON.stringify([own, symlinks])
    const asked =
      brought.get(layout) ??
      Promise.resolve(sandboxArchive({ own, symlinks, warden })).then((archive) => bring(engine, tagOf(archive), () => ({ archive, timeoutMs: importMs })))
    brought.set(layout, asked)
    asked.catch(() => brought.delete(layout))
    return asked
  }
}

/** What is mounted onto, or bound over by the warden. */
const sandboxFolders = ['dev', 'etc', 'home/user', 'proc', 'run', 'sys', 'tmp', 'var/lib/glovebox', 'var/tmp', workdir.slice(1), diskPlace.slice(1)]

interface SandboxLayout {
  readonly own: readonly string[]
  readonly symlinks: TemplateRoot['symlinks']
  readonly warden: string
}

function sandboxArchive({ own, symlinks, warden }: SandboxLayout): Buffer {
  const names = [...sandboxFolders, ...own.map((path) => path.slice(1))]
  const all = [...new Set(names.flatMap((name) => name.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'))))]
  const links = [...symlinks, { path: '/var/run', target: '/run' }]
  return Buffer.concat([
    ...all.map((name) => entry({ type: 'folder', name: `${name}/`, mode: 0o755 })),
    ...links.map(({ path, target }) => entry({ type: 'link', name: path.slice(1), target, mode: 0o777 })),
    entry({ type: 'file', name: wardenPath.slice(1), mode: 0o555, content: readFileSync(warden) }),
    Buffer.alloc(endBytes),
  ])
}

interface Entry {
  readonly type: 'folder' | 'file' | 'link'
  readonly name: string
  readonly mode: number
  readonly content?: Buffer
  /** Of a link. */
  readonly target?: string
}

function entry({ type, name, mode, content = Buffer.alloc(0), target = '' }: Entry): Buffer {
  const header: TarHeader = { type, name: Buffer.from(name), target: Buffer.from(target), mode, size: content.length, modifiedAtMs: 0 }
  return Buffer.concat([encodeHeader(header), content, Buffer.alloc(paddingOf(content.length))])
}
