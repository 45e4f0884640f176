/**
 * The image of every cell: our two programs and empty folders to mount onto, nothing else. What a template shows is bound into it, because a template of this machine
 * is this machine's files; so one small image serves them all, and there is nothing to fetch from anywhere.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { nativeProgram } from '../../sys/native.js'
import { EngineError, type EngineClient } from '../../sys/docker/client.js'
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

/** Podman takes a name without a host for one of a registry's. */
const repository = 'localhost/glovebox-cell'
/** What the engine and the launcher mount onto; the launcher makes the root of the cell in the last. */
const folders = ['dev', 'etc', 'proc', 'sys', inContainer.template.slice(1), inContainer.groups.slice(1), inContainer.mounts.slice(1), 'tmp', 'tmp/.root']
const importMs = 120_000

export interface ContainerPrograms {
  readonly launcher: string
  readonly warden: string
}

/** Its name, once the engine has it. Its tag is its content, so that another build of ours is another image. */
export async function importImage(engine: EngineClient, programs: Partial<ContainerPrograms> = {}): Promise<string> {
  const archive = imageArchive(programs)
  const tag = createHash('sha256').update(archive).digest('hex').slice(0, 32)
  const name = `${repository}:${tag}`
  if (await isThere(engine, name)) return name
  const query = { fromSrc: '-', repo: name, changes: `LABEL glovebox.image=${tag}` }
  await engine.call('POST', '/images/create', { query, archive, timeoutMs: importMs })
  return name
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
  return Buffer.concat([...entries, Buffer.alloc(1024)])
}

interface Entry {
  readonly type: 'folder' | 'file'
  readonly name: string
  readonly mode: number
  readonly content?: Buffer
}

function entry({ type, name, mode, content = Buffer.alloc(0) }: Entry): Buffer {
  const header: TarHeader = { type, name: Buffer.from(name), target: Buffer.alloc(0), mode, size: content.length, modifiedAtMs: 0 }
  return Buffer.concat([encodeHeader(header), content, Buffer.alloc(paddingOf(content.length))])
}
