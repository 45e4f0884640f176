import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { FileCalls, FileEvent } from '../../src/contract/files.js'
import type { Engine } from '../../src/engine/engine.js'
import { nativeProgram } from '../../src/sys/native.js'
import { skipGroup } from '../unless.js'
import { rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'
import { waitUntil } from './processes.js'

type Count = 'instances' | 'watches'

/** A namespace of users has counts of its own, which whoever is root in it may lower; in another below it everyone is who they were. */
const within = (count: Count, most: number): readonly [string, ...string[]] => [
  'unshare',
  '--map-root-user',
  'sh',
  '-c',
  `echo ${most} > /proc/sys/user/max_inotify_${count} && exec unshare --map-user=${process.getuid?.() ?? 0} --map-group=${process.getgid?.() ?? 0} "$0" "$@"`,
]

function lacking(): string | false {
  const [program, ...args] = within('watches', 1)
  const { status, stderr } = spawnSync(program, [...args, 'true'])
  return status !== 0 && `no namespace of users with counts of its own here: ${String(stderr)}`
}

let engine: Engine | undefined

afterEach(async () => {
  await engine?.[Symbol.asyncDispose]()
})

async function filesWithin(count: Count, most: number): Promise<{ readonly files: FileCalls; readonly workdir: string }> {
  const driver = new PlainDriver()
  driver.argv = () => [...within(count, most), nativeProgram('warden'), '--subreaper']
  engine = createPlainEngine(driver)
  const { id } = await engine.create({})
  return { files: engine.files.of(id), workdir: driver.cells[0]?.workdir ?? '' }
}

/** All that comes, as it comes. */
function gather(events: AsyncIterable<FileEvent>): FileEvent[] {
  const seen: FileEvent[] = []
  void (async () => {
    for await (const event of events) seen.push(event)
  })().catch(() => undefined)
  return seen
}

describe('watches that are used up', () => {
  skipGroup(lacking())

  test('are told as such, not as files or a disk; what there is room for is watched', async () => {
    const { files } = await filesWithin('instances', 1)
    const first = (await files.watch('.'))[Symbol.asyncIterator]()
    const refused = await rejectionOf(files.watch('.'))
    expect(refused).toMatchObject({
      code: 'busy',
      message: expect.stringMatching(/^files\.watch \S+: its user has as many watches as the kernel allows \(fs\.inotify\.max_user_instances\)$/),
      hint: 'sysctl fs.inotify.max_user_instances',
    })
    await first.return?.()
    await (await files.watch('.'))[Symbol.asyncIterator]().return?.()
  })

  test('by the folders of another watch are told, too', async () => {
    const { files } = await filesWithin('watches', 1)
    const first = (await files.watch('.'))[Symbol.asyncIterator]()
    expect(await rejectionOf(files.watch('.'))).toMatchObject({
      code: 'busy',
      message: expect.stringContaining('its user watches as many folders as the kernel allows (fs.inotify.max_user_watches)'),
      hint: 'sysctl fs.inotify.max_user_watches',
    })
    await first.return?.()
  })

  test('amid a tree leave it watched in part, which is told with its reason', async () => {
    const { files, workdir } = await filesWithin('watches', 3)
    for (const name of ['a', 'b', 'c', 'd']) mkdirSync(join(workdir, name))
    const seen = gather(await files.watch('.', { recursive: true }))
    const why = expect.stringContaining('its user watches as many folders as the kernel allows (fs.inotify.max_user_watches)') as string
    await waitUntil(() => seen.length >= 2)
    expect(seen).toEqual(expect.arrayContaining([{ type: 'overflow', why }]))
    for (const name of ['a', 'd', '.']) writeFileSync(join(workdir, name, 'made'), '')
    await waitUntil(() => seen.some((event) => event.type === 'created' && event.path === join(workdir, 'made')))
    const told = seen.filter(({ type }) => type === 'created').map((event) => ('path' in event ? event.path : ''))
    expect(told).toEqual([join(workdir, 'a', 'made'), join(workdir, 'made')])
    execFileSync('mkdir', [join(workdir, 'later')])
    await waitUntil(() => seen.at(-1)?.type === 'overflow')
    expect(seen.filter((event) => 'why' in event)).toHaveLength(1)
  })
})
