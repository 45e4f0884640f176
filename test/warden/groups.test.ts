import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, readlinkSync, rmdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Frame, Peer, type Start, TYPE, WARDEN } from './frames.js'
import { testUnless } from '../unless.js'

const failureOf = (frame: Frame) => ({ stage: frame.payload.readUInt32LE(0), errno: frame.payload.readUInt32LE(4), text: frame.payload.subarray(8).toString() })

/** A warden that was given these folders and files as descriptors from 3 up. */
function peerWith(paths: readonly (readonly [path: string, flags: string])[], args: readonly string[]): Peer {
  const fds = paths.map(([path, flags]) => openSync(path, flags))
  const peer = new Peer([WARDEN, '--subreaper', ...args], { extra: fds })
  for (const fd of fds) closeSync(fd)
  return peer
}

describe('in a model of cgroups made of plain files', () => {
  let root = ''
  const groups = ['', 'run-1', 'run-2'] as const
  const written = () => groups.map((group) => readFileSync(join(root, group, 'tasks'), 'utf8'))

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'warden-groups-'))
    for (const group of groups) {
      if (group !== '') mkdirSync(join(root, group))
      writeFileSync(join(root, group, 'tasks'), '')
    }
  })
  afterEach(() => rmSync(root, { recursive: true }))

  const started = async (peer: Peer, run: number, start: Partial<Start>) => {
    const { ending } = await peer.run(run, { argv: ['true'], ...start })
    expect([ending.kind, ending.code]).toEqual([0, 0])
  }

  test('each program writes itself into the group that its START names, and only there', async () => {
    await using peer = peerWith([[root, 'r']], ['--join-below', '3', 'tasks'])
    await started(peer, 1, { group: 'run-1' })
    expect(written()).toEqual(['', '0', ''])
    await started(peer, 2, { group: 'run-2' })
    expect(written()).toEqual(['', '0', '0'])
  })

  test('a program without a group writes itself into the folder itself', async () => {
    await using peer = peerWith([[root, 'r']], ['--join-below', '3', 'tasks'])
    await started(peer, 1, {})
    expect(written()).toEqual(['0', '', ''])
  })

  test('a program joins every folder and every file there is', async () => {
    writeFileSync(join(root, 'procs'), '')
    writeFileSync(join(root, 'run-1', 'cgroup.procs'), '')
    const given = [
      [root, 'r'],
      [join(root, 'procs'), 'w'],
      [root, 'r'],
    ] as const
    await using peer = peerWith(given, ['--join-below', '3', 'tasks', '--join', '4', '--join-below', '5', 'cgroup.procs'])
    await started(peer, 1, { group: 'run-1' })
    expect([...written(), readFileSync(join(root, 'procs'), 'utf8'), readFileSync(join(root, 'run-1/cgroup.procs'), 'utf8')]).toEqual(['', '0', '', '0', '0'])
  })

  test('a program whose group is not there, or a link, or nowhere to be joined, is not started', async () => {
    symlinkSync(join(root, 'run-2/tasks'), join(root, 'run-1/linked'))
    await using peer = peerWith([[root, 'r']], ['--join-below', '3', 'tasks'])
    peer.start(1, { argv: ['true'], group: 'run-3' })
    expect(failureOf(await peer.takeType(TYPE.FAILED, 1))).toEqual({ stage: 3, errno: 2, text: 'open cgroup' })
    await using linked = peerWith([[root, 'r']], ['--join-below', '3', 'linked'])
    linked.start(1, { argv: ['true'], group: 'run-1' })
    expect(failureOf(await linked.takeType(TYPE.FAILED, 1))).toEqual({ stage: 3, errno: 40, text: 'open cgroup' })
    await using nowhere = new Peer()
    nowhere.start(1, { argv: ['true'], group: 'run-1' })
    expect(failureOf(await nowhere.takeType(TYPE.FAILED, 1))).toEqual({ stage: 3, errno: 2, text: 'find a place to join group run-1' })
    expect(written()).toEqual(['', '', ''])
  })

  test('what the warden itself is to be in it enters before it says anything, and keeps no way there', async () => {
    const doors = ['run-1', 'run-2'].map((group) => [join(root, group, 'tasks'), 'w'] as const)
    await using peer = peerWith(doors, ['--enter', '3', '--enter', '4'])
    await peer.takeType(TYPE.HELLO, 0)
    expect(written()).toEqual(['', '0', '0'])
    const own = `/proc/${peer.child.pid}/fd`
    expect(readdirSync(own).filter((fd) => readlinkSync(join(own, fd)).endsWith('/tasks'))).toEqual([])
  })

  test('a warden that cannot enter what it is to be in says so and ends', async () => {
    await using peer = peerWith([[join(root, 'tasks'), 'r']], ['--enter', '3'])
    expect([await peer.exited, peer.stderr]).toEqual([70, 'warden: enter a group of the cell: Bad file descriptor\n'])
    expect(written()).toEqual(['', '', ''])
  })

  test('a program sees nothing of the folder', async () => {
    await using peer = peerWith([[root, 'r']], ['--join-below', '3', 'tasks'])
    const said = await peer.run(1, { argv: ['sh', '-c', 'for fd in $(seq 0 99); do [ -e /proc/$$/fd/$fd ] && printf "%s " $fd; done; true'], group: 'run-1' })
    expect(said.stdout.toString()).toBe('0 1 2 ')
  })
})

/** The pids hierarchy of version 1, where this process is in it; or why there is none to try with. */
function pidsFolder(): { readonly folder: string } | { readonly reason: string } {
  if (process.getuid?.() !== 0) return { reason: 'only root makes cgroups here' }
  const own = /^\d+:pids:(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1]
  const mount = /^cgroup (\S+) cgroup .*\bpids\b/m.exec(readFileSync('/proc/mounts', 'utf8'))?.[1]
  return own === undefined || mount === undefined ? { reason: 'no pids hierarchy of version 1' } : { folder: join(mount, own) }
}

const found = pidsFolder()

testUnless('reason' in found && found.reason)(
  'in real cgroups a program is in its group at the gate, before it drops to its own id, and what it starts is too',
  async () => {
    const root = join('folder' in found ? found.folder : '', `glovebox-groups-${process.pid}`)
    mkdirSync(root)
    mkdirSync(join(root, 'run-1'))
    try {
      await using peer = peerWith([[root, 'r']], ['--join-below', '3', 'cgroup.procs'])
      peer.start(1, { argv: ['sh', '-c', 'cat /proc/self/cgroup; sleep 60 >/dev/null & sleep 60'], group: 'run-1', uid: 54323, gid: 54323, gate: true })
      const pid = (await peer.takeType(TYPE.GATED, 1)).payload.readUInt32LE(0)
      const members = () => readFileSync(join(root, 'run-1/cgroup.procs'), 'utf8').trim().split('\n').map(Number)
      expect(members()).toEqual([pid])
      expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^Uid:\t54323\t54323\t54323\t54323$/m)
      peer.send({ type: TYPE.RELEASE, run: 1 })
      expect((await peer.take((frame) => frame.type === TYPE.OUTPUT)).payload.toString()).toMatch(
        new RegExp(`:pids:.*/glovebox-groups-${process.pid}/run-1$`, 'm'),
      )
      await expect.poll(() => members().length).toBe(3)
      peer.send({ type: TYPE.KILL, run: 1 })
      await peer.takeType(TYPE.GONE, 1)
      expect(readFileSync(join(root, 'run-1/cgroup.procs'), 'utf8')).toBe('')
    } finally {
      rmdirSync(join(root, 'run-1'))
      rmdirSync(root)
    }
  },
)
