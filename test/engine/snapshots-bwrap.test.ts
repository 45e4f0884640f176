import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import { SandboxError } from '../../src/contract/errors.js'
import type { SpecInput } from '../../src/contract/spec.js'
import { verifyReceipt } from '../../src/receipt/index.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { descendantsOf } from '../../src/sys/posture/process-tree.js'
import { testUnless } from '../unless.js'
import { rejectionOf } from './collect.js'

const folder = mkdtempSync(join(tmpdir(), 'gbx-bwrap-snapshots-'))
const platform = createPlatform({ snapshotDir: join(folder, 'store') })
afterAll(async () => {
  await platform[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const probe = (await platform.probe()).find(({ driver }) => driver === 'bwrap')
const lacking = probe?.available === true ? false : 'bwrap cannot build cells here'
const noRoot = lacking || (probe?.users.root.available === true ? false : 'cells have no root here')

async function use(spec: SpecInput, act: (sandbox: Sandbox) => Promise<void>): Promise<void> {
  const sandbox = await Sandbox.create({ driver: 'bwrap', ...spec, platform })
  try {
    await act(sandbox)
  } finally {
    await sandbox.close()
  }
}

function groupsOf(id: string, folder = '/sys/fs/cgroup'): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      if (!entry.isDirectory()) return []
      return entry.name.includes(id) ? [join(folder, entry.name)] : groupsOf(id, join(folder, entry.name))
    })
  } catch {
    return []
  }
}

async function kept(sandbox: Sandbox): Promise<string> {
  return (await sandbox.snapshot()).id
}

const look = 'cd /; stat -c "%n %a %u:%g %Y" workspace/* tmp/* home/user/* home/user/.[a-z]* 2> /dev/null'

testUnless(lacking)('every folder of its own comes back, hidden files and all; shared memory does not', async () => {
  await use({}, async (sandbox) => {
    await sandbox.run(
      'echo w > /workspace/w; echo t > /tmp/t; echo h > ~/.profile; echo s > /dev/shm/s; chmod 4711 /tmp/t; touch -d 2020-02-02T02:02:02.5 ~/.profile',
    )
    const before = (await sandbox.run(look)).stdout
    expect(before.trim().split('\n').length).toBe(3)
    await use({ from: await kept(sandbox) }, async (again) => {
      expect((await again.run(look)).stdout).toBe(before.replace(' 4711 ', ' 711 '))
      expect((await again.run('ls -A /dev/shm')).stdout).toBe('')
      expect((await again.run('stat -c %y ~/.profile')).stdout).toContain(':02.500000000')
      expect(await again.diff({ since: await kept(sandbox) })).toEqual([])
    })
  })
})

testUnless(noRoot)('what its user may not read is kept all the same, and belongs to the same users again', async () => {
  await use({}, async (sandbox) => {
    await sandbox.run('echo secret > locked; chmod 000 locked; mkdir dark; echo deep > dark/file; chmod 000 dark')
    await sandbox.run('echo root > /workspace/roots; chmod 600 /workspace/roots', { user: 'root' })
    await use({ from: await kept(sandbox) }, async (again) => {
      const { stdout } = await again.run('stat -c "%n %a %u" *; cat locked dark/file roots', { user: 'root' })
      expect(stdout).toBe('dark 0 1000\nlocked 0 1000\nroots 600 0\nsecret\ndeep\nroot\n')
      expect((await again.run('cat roots')).exitCode).toBe(1)
    })
  })
})

testUnless(lacking || (noRoot === false && 'cells have a root here, who may read it'))(
  'a file that nobody may read fails the snapshot by its name',
  async () => {
    await use({}, async (sandbox) => {
      await sandbox.run('echo secret > locked; chmod 000 locked')
      const error = await rejectionOf(sandbox.snapshot())
      expect(error).toMatchObject({ code: 'denied', message: expect.stringContaining('locked') })
      expect(await rejectionOf(sandbox.diff())).toMatchObject({ code: 'denied', message: expect.stringContaining('/workspace/locked') })
    })
  },
)

testUnless(lacking)('what is mounted below the workspace is not the sandbox’s', async () => {
  const source = join(folder, 'source')
  mkdirSync(source)
  writeFileSync(join(source, 'host-file'), 'of the host')
  await use({ mounts: [{ source, target: '/workspace/deep/data' }] }, async (sandbox) => {
    expect((await sandbox.run('cat deep/data/host-file; echo mine > own')).stdout).toBe('of the host')
    expect((await sandbox.diff()).map(({ path }) => path)).toEqual(['/workspace/own'])
    const [fork] = await sandbox.fork(1)
    expect((await fork?.run('cat own deep/data/host-file'))?.stdout).toBe('mine\nof the host')
    await fork?.close()
    await use({ from: await kept(sandbox) }, async (again) => {
      expect((await again.run('ls')).stdout).toBe('own\n')
    })
  })
})

testUnless(lacking || (probe?.limits.disk.enforced === true ? false : 'no disk limit here'))(
  'a disk that is a little too small is told by its limit, also when only the kernel knows',
  async () => {
    await use({}, async (sandbox) => {
      await sandbox.run('for i in $(seq 200); do mkdir -p d/$i; ln -s "$(printf %01000d $i)" l$i; done; head -c 900000 /dev/zero > big')
      const from = await kept(sandbox)
      const before = await platform.closeAll({ name: 'never' })
      const error = await rejectionOf(Sandbox.create({ driver: 'bwrap', platform, from, limits: { disk: 901_120, inodes: 4096 }, name: 'never' }))
      expect(error).toBeInstanceOf(SandboxError)
      expect(error).toMatchObject({ code: 'invalid', message: expect.stringMatching(/^limits\.disk: sha256:/) })
      expect([before, await platform.closeAll({ name: 'never' })]).toEqual([0, 0])
    })
  },
)

const noPause = lacking || (probe?.features.pause.available === true ? false : 'nothing can be paused here')

const counting = `
import os
one, two = (os.open(name, os.O_RDWR | os.O_CREAT, 0o644) for name in ('one', 'two'))
number = 0
while True:
  number += 1
  for file in (one, two): os.pwrite(file, b'%020d\\n' % number, 0)
`

async function counted(sandbox: Sandbox): Promise<number[]> {
  return (await sandbox.run('cat one two')).stdout.trim().split('\n').map(Number)
}

async function untilCounted(sandbox: Sandbox): Promise<void> {
  const [, before = 0] = await counted(sandbox)
  await expect.poll(async () => (await counted(sandbox))[1] ?? 0).toBeGreaterThan(before)
}

testUnless(noPause)(
  'programs that write all the time stand still for a snapshot; what holds around them and the worker is as demanded all the time',
  async () => {
    await use({}, async (sandbox) => {
      await sandbox.run('head -c 20000000 /dev/urandom > between')
      await sandbox.spawn(['/usr/bin/python3', '-c', counting])
      await untilCounted(sandbox)
      for (let round = 0; round < 3; round += 1) {
        const [[fork], receipt] = await Promise.all([sandbox.fork(1), sandbox.receipt()])
        expect(verifyReceipt(receipt)).toMatchObject({ valid: true })
        const [one = 0, two = 0] = await counted(fork as Sandbox)
        await fork?.close()
        expect([0, 1]).toContain(one - two)
        await untilCounted(sandbox)
      }
      await sandbox.pause()
      const { cpuMs } = await sandbox.usage()
      await sleep(300)
      expect((await sandbox.usage()).cpuMs).toBe(cpuMs)
      await sandbox.resume()
      await untilCounted(sandbox)
    })
  },
)

testUnless(noPause)('a snapshot that is called off or fails lets programs go on', async () => {
  await use({}, async (sandbox) => {
    await sandbox.run('head -c 60000000 /dev/urandom > big')
    await sandbox.spawn(['/usr/bin/python3', '-c', counting])
    await untilCounted(sandbox)
    for (const ms of [1, 20, 60, 120]) {
      expect(await rejectionOf(sandbox.snapshot({ signal: AbortSignal.timeout(ms) }))).toMatchObject({ name: 'TimeoutError' })
      await untilCounted(sandbox)
    }
    await sandbox.run('touch .wh.odd')
    expect(await rejectionOf(sandbox.export())).toMatchObject({ code: 'conflict' })
    await untilCounted(sandbox)
    expect((await sandbox.snapshot()).entries).toBe(4)
  })
})

testUnless(noPause)('a sandbox that is closed while it stands still for a snapshot leaves nothing, and says why', async () => {
  await use({}, async (sandbox) => {
    await sandbox.run('head -c 60000000 /dev/urandom > big')
    await sandbox.spawn('while :; do :; done')
    const before = descendantsOf(process.pid)
    const taking = rejectionOf(sandbox.snapshot())
    await sleep(100)
    await sandbox.close()
    expect(await taking).toMatchObject({ code: 'closed', message: `sandbox ${sandbox.id} was closed` })
    const after = descendantsOf(process.pid)
    expect(before.length).toBeGreaterThan(after.length)
    expect(groupsOf(sandbox.id)).toEqual([])
  })
})

testUnless(noPause)('a pause that waited for a snapshot does not catch the worker that read it', async () => {
  await use({}, async (sandbox) => {
    await sandbox.run('head -c 8000000 /dev/zero > a')
    for (let round = 0; round < 8; round += 1) {
      const taking = sandbox.snapshot()
      await sleep(100)
      await sandbox.pause()
      // While it is paused: nothing that ends then is left to be ended.
      await taking
      await sandbox.resume()
    }
    expect((await sandbox.run('echo alive')).stdout).toBe('alive\n')
  })
})

testUnless(noPause)('a paused sandbox cannot be read, and is not hurt by the try', async () => {
  await use({}, async (sandbox) => {
    await sandbox.run('echo x > a')
    await platform.life.pause(sandbox.id)
    expect(await rejectionOf(sandbox.snapshot())).toMatchObject({ code: 'conflict' })
    await platform.life.resume(sandbox.id)
    expect((await sandbox.snapshot()).entries).toBe(1)
  })
})
