import { spawnSync } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { SpecInput } from '../../src/contract/spec.js'
import type { SinceOptions } from '../../src/contract/snapshots.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { testUnless } from '../unless.js'
import { rejectionOf } from './collect.js'

const folder = mkdtempSync(join(tmpdir(), 'gbx-overlay-snapshots-'))
const platform = createPlatform({ snapshotDir: join(folder, 'store') })
afterAll(async () => {
  await platform[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const probe = (await platform.probe()).find(({ driver }) => driver === 'bwrap')
const lacking = probe?.available === true ? false : 'bwrap cannot build cells here'
const noMounts = lacking || (probe?.features['mounts-overlay'].available === true ? false : 'no overlays on mounts here')
const noRoot = lacking || (probe?.features['root-overlay'].available === true ? false : 'no overlay on the root here')

const source = join(folder, 'source')
beforeEach(() => {
  rmSync(source, { recursive: true, force: true })
  mkdirSync(join(source, 'deep/inner'), { recursive: true })
  mkdirSync(join(source, 'replaced'))
  for (const name of ['kept', 'changed', 'gone', 'moved', 'touched', 'becomes', 'deep/file', 'deep/inner/file', 'replaced/old', 'replaced/same']) {
    writeFileSync(join(source, name), `${name} of the host\n`)
  }
  symlinkSync('kept', join(source, 'link'))
  if (process.getuid?.() === 0) spawnSync('chown', ['-R', '1234:1234', source])
})

const over = '/workspace/over'

async function use<T>(spec: SpecInput, act: (sandbox: Sandbox) => Promise<T>): Promise<T> {
  const sandbox = await Sandbox.create({ driver: 'bwrap', ...spec, platform })
  try {
    return await act(sandbox)
  } finally {
    await sandbox.close()
  }
}

const mounted = (target = over): SpecInput => ({ mounts: [{ source, target, mode: 'overlay' }] })

async function told(sandbox: Sandbox, options: SinceOptions = {}): Promise<string[]> {
  return (await sandbox.diff(options)).map(({ type, entry, path }) => `${type} ${entry} ${path.replace(`${over}/`, '')}`)
}

async function view(sandbox: Sandbox, top = over): Promise<string> {
  const script = `cd ${top} && find . -mindepth 1 -printf '%P %y %m %U:%G %n %l ' -exec sh -c '[ -L "$1" ] || [ ! -f "$1" ] || sha256sum < "$1"' sh {} ';' -printf '\\n' | sort`
  const { stdout, stderr } = await sandbox.run(script)
  expect(stderr).toBe('')
  return stdout.replace(/ d (\d+) (\S+) \d+ /g, ' d $1 $2 ')
}

/** Everything at once: each line does one thing to what lies beneath. */
const doings = `
set -e; cd ${over}
echo more >> changed; rm gone; mv moved elsewhere; touch touched; chmod 600 kept; chmod 644 kept
rm becomes; mkdir becomes; echo in > becomes/file
rm -r deep; echo 'now a file' > deep
rm -r replaced; mkdir replaced; echo new > replaced/new; echo 'replaced/same of the host' > replaced/same
rm link; ln -s gone link
mkdir -p own/sub; echo a > own/a; ln own/a own/b; mkfifo own/fifo; ln -s /etc/passwd own/out; echo l > own/.wh.literal; chmod 4750 own/a; chmod 1777 own/sub
printf 'odd' > "own/$(printf 'n\\377')"; rm own/sub/../../touched; cp kept touched
`
const differences = [
  'changed folder becomes',
  'added file becomes/file',
  'changed file changed',
  'changed file deep',
  'removed file deep/file',
  'removed folder deep/inner',
  'removed file deep/inner/file',
  'added file elsewhere',
  'removed file gone',
  'changed link link',
  'removed file moved',
  'added folder own',
  'added file own/.wh.literal',
  'added file own/a',
  'added file own/b',
  'added fifo own/fifo',
  'added file own/n�',
  'added link own/out',
  'added folder own/sub',
  'added file replaced/new',
  'removed file replaced/old',
  'changed file touched',
]

testUnless(noMounts)('everything done to a folder under an overlay is told as what it is, and kept with what was removed', async () => {
  const before = readdirSync(source, { recursive: true }).sort()
  await use(mounted(), async (sandbox) => {
    expect(await told(sandbox)).toEqual([])
    expect((await sandbox.run(doings)).stderr).toBe('')
    expect(await told(sandbox)).toEqual(differences)
    const seen = await view(sandbox)
    const { id } = await sandbox.snapshot({ name: 'overlaid' })
    expect(await told(sandbox, { since: id })).toEqual([])
    await use({ ...mounted(), from: 'overlaid' }, async (again) => {
      expect(await view(again)).toBe(seen.replace(' 4750 ', ' 750 ').replace(' 4750 ', ' 750 '))
      expect(await told(again)).toEqual(differences)
      expect(await told(again, { since: id })).toEqual([])
      expect((await again.snapshot()).id).toBe(id)
    })
  })
  expect(readdirSync(source, { recursive: true }).sort()).toEqual(before)
  expect(readFileSync(join(source, 'gone'), 'utf8')).toBe('gone of the host\n')
})

testUnless(noMounts)('since a snapshot only what came after it is told, also of what lies beneath', async () => {
  await use(mounted(), async (sandbox) => {
    await sandbox.run(`cd ${over}; rm gone; echo 1 >> changed; mkdir own; echo x > own/x`)
    const { id } = await sandbox.snapshot()
    await sandbox.run(`cd ${over}; echo back > gone; echo 2 >> changed; rm -r own moved; rm -r deep; mkdir deep; echo 3 > kept`)
    expect(await told(sandbox, { since: id })).toEqual([
      'changed file changed',
      'removed file deep/file',
      'removed folder deep/inner',
      'removed file deep/inner/file',
      'added file gone',
      'changed file kept',
      'removed file moved',
      'removed folder own',
      'removed file own/x',
    ])
    await use(mounted(), async (fresh) => {
      expect(await told(fresh, { since: id })).toEqual(['changed file changed', 'added file gone', 'removed folder own', 'removed file own/x'])
      expect(await rejectionOf(fresh.export({ since: id }))).toMatchObject({ code: 'conflict', message: expect.stringContaining('it is what lies beneath') })
    })
  })
})

testUnless(noMounts)('a new folder hides nothing but itself, whatever it is called, and a name of any length can be removed', async () => {
  const [long, longer] = ['l'.repeat(252), 'm'.repeat(255)]
  for (const name of [long, longer]) mkdirSync(join(source, name))
  if (process.getuid?.() === 0) for (const name of [long, longer]) chownSync(join(source, name), 1234, 1234)
  await use(mounted(), async (sandbox) => {
    const script = `cd ${over}; mkdir .wh..opq deep/.wh..opq; touch .wh..opq/in own; rmdir ${long} ${longer}; mkdir ${longer} ${'n'.repeat(255)}; touch ${longer}/in`
    expect((await sandbox.run(script)).stderr).toBe('')
    const [seen, { id }] = [await view(sandbox), await sandbox.snapshot()]
    await use({ ...mounted(), from: id }, async (again) => expect(await view(again)).toBe(seen))
  })
})

/** As archives of images mark what was removed; here they are names like others. */
const markNames = ['.wh.', '.wh..opq', '.wh..wh..opq', '.wh..wh..wh..opq', '.wh.kept']

testUnless(noMounts)('what is called as if it were a mark stays removed where it was removed, and there where it was made', async () => {
  for (const name of markNames) {
    writeFileSync(join(source, 'deep', name), `${name} of the host\n`)
    mkdirSync(join(source, 'replaced', name))
  }
  if (process.getuid?.() === 0) spawnSync('chown', ['-R', '1234:1234', source])
  const names = markNames.join(' ')
  await use(mounted(), async (sandbox) => {
    const script = `cd ${over}; (cd deep && rm ${names}); (cd replaced && rmdir ${names}); mkdir made made/in folders; (cd made/in && touch ${names}); (cd folders && mkdir ${names})`
    expect((await sandbox.run(script)).stderr).toBe('')
    const [seen, { id }] = [await view(sandbox), await sandbox.snapshot()]
    expect(seen).toMatch(/^deep\/file f /m)
    expect(seen.match(/^made\/in\/\.wh\./gm)).toHaveLength(markNames.length)
    expect(await told(sandbox, { since: id })).toEqual([])
    await use({ ...mounted(), from: id }, async (again) => {
      expect(await view(again)).toBe(seen)
      expect((await again.snapshot()).id).toBe(id)
    })
    const [fork] = (await sandbox.fork(1)) as [Sandbox]
    expect(await view(fork)).toBe(seen)
    await fork.close()
    await sandbox.pause({ memory: false })
    await sandbox.resume()
    expect(await view(sandbox)).toBe(seen)
  })
})

testUnless(noRoot)('a root that is an overlay keeps what is called like a mark, made and removed', async () => {
  const names = markNames.join(' ')
  const spec = { root: 'overlay', user: 'root' } as const
  await use(spec, async (sandbox) => {
    expect((await sandbox.run(`mkdir -p /opt/m /usr/share/m && cd /opt/m && touch ${names} && cd /usr/share/m && touch ${names}`)).stderr).toBe('')
    const first = await sandbox.snapshot()
    await use({ ...spec, from: first.id }, async (again) => {
      expect((await again.run(`cd /opt/m && rm ${names} && ls -A /opt/m /usr/share/m`)).stdout).toBe(
        `/opt/m:\n\n/usr/share/m:\n${[...markNames].sort().join('\n')}\n`,
      )
      const [fork] = (await again.fork(1)) as [Sandbox]
      expect((await fork.run('ls -A /opt/m /usr/share/m')).stdout).toBe((await again.run('ls -A /opt/m /usr/share/m')).stdout)
      await fork.close()
    })
  })
})

testUnless(noMounts)('an archive of what was done to a folder, applied to a copy of it, makes what the sandbox sees', async () => {
  await use(mounted(), async (sandbox) => {
    await sandbox.run(`${doings}rm own/.wh.literal own/a own/b; rm -rf own/n*`)
    const parts: Uint8Array[] = []
    for await (const part of await sandbox.export()) parts.push(part)
    const copy = join(folder, 'copy')
    const script = `
import os, shutil, sys, tarfile
source, archive, copy = sys.argv[1:]
os.makedirs(copy + '/workspace'); shutil.copytree(source, copy + '/workspace/over', symlinks=True)
def gone(path):
  if os.path.isdir(path) and not os.path.islink(path): shutil.rmtree(path)
  elif os.path.lexists(path): os.remove(path)
with tarfile.open(archive) as tar:
  for member in tar:
    at, name = os.path.split(os.path.join(copy, member.name))
    if name.startswith('.wh.'): gone(os.path.join(at, name[4:]))
    else:
      if not (member.isdir() and os.path.isdir(os.path.join(at, name))): gone(os.path.join(at, name))
      tar.extract(member, copy)
`
    writeFileSync(join(folder, 'changes.tar'), Buffer.concat(parts))
    const ran = spawnSync('/usr/bin/python3', ['-c', script, source, join(folder, 'changes.tar'), copy], { encoding: 'utf8' })
    expect(ran.stderr).toBe('')
    const list = `find . -mindepth 1 -printf '%P %y %l\\n' | sort; cat changed deep replaced/* becomes/file`
    const applied = spawnSync('sh', ['-c', list], { cwd: join(copy, 'workspace/over'), encoding: 'utf8' })
    expect(applied.stdout).toBe((await sandbox.run(list, { cwd: over })).stdout)
    rmSync(copy, { recursive: true })
  })
})

testUnless(noMounts)('forks of an overlay share nothing, and one that was away has its overlay again', async () => {
  await use(mounted(), async (sandbox) => {
    await sandbox.run(doings)
    const seen = await view(sandbox)
    const forks = await sandbox.fork(2)
    const [one, other] = forks as [Sandbox, Sandbox]
    await one.run(`cd ${over}; rm -r *; echo one > one`)
    expect((await one.run(`ls ${over}`)).stdout).toBe('one\n')
    const plain = seen.replaceAll(' 4750 ', ' 750 ')
    expect([await view(other), await view(sandbox)]).toEqual([plain, seen])
    await sandbox.pause({ memory: false })
    await sandbox.resume()
    expect(await view(sandbox)).toBe(plain)
    expect(await told(sandbox)).toEqual(differences)
    await Promise.all(forks.map((fork) => fork.close()))
  })
})

testUnless(noMounts)('what was removed or replaced where another sandbox has a mount is refused before anybody gets it', async () => {
  const precious = join(folder, 'precious')
  mkdirSync(precious)
  writeFileSync(join(precious, 'file'), 'of the host')
  if (process.getuid?.() === 0) chownSync(precious, 1234, 1234)
  const from = await use(mounted(), async (sandbox) => {
    await sandbox.run(`cd ${over}; rm -r deep`)
    return (await sandbox.snapshot()).id
  })
  const spec = { ...mounted(), from }
  const beside = { source: precious, target: `${over}/deep/inner`, mode: 'rw' as const }
  const error = await rejectionOf(Sandbox.create({ driver: 'bwrap', ...spec, mounts: [...(spec.mounts ?? []), beside], platform }))
  expect(error).toMatchObject({ code: 'invalid', message: `from: ${from} has /workspace/over/deep, where this sandbox has a mount` })
  expect(readdirSync(precious)).toEqual(['file'])
})

testUnless(noMounts)('a folder that is another by now is not taken for what lies beneath', async () => {
  await use(mounted(), async (sandbox) => {
    await sandbox.run(`rm ${over}/gone`)
    renameSync(source, `${source}.away`)
    mkdirSync(source)
    expect(await rejectionOf(sandbox.diff())).toMatchObject({ code: 'conflict', message: expect.stringContaining('leads elsewhere now') })
    rmSync(source, { recursive: true })
    renameSync(`${source}.away`, source)
    expect(await told(sandbox)).toEqual(['removed file gone'])
  })
})

testUnless(noMounts)('a workspace that is an overlay begins with what another wrote in a plain one, and the other way round', async () => {
  const plain = await use({}, async (sandbox) => {
    await sandbox.run('echo mine > mine; mkdir deep; echo over > deep/file')
    return (await sandbox.snapshot()).id
  })
  const overlaid = await use({ ...mounted('/workspace'), from: plain }, async (sandbox) => {
    expect((await sandbox.run('cat mine deep/file deep/inner/file')).stdout).toBe('mine\nover\ndeep/inner/file of the host\n')
    await sandbox.run('rm gone; rm -r replaced')
    return (await sandbox.snapshot()).id
  })
  await use({ from: overlaid }, async (sandbox) => {
    expect((await sandbox.run('find . -type f | sort')).stdout).toBe('./deep/file\n./mine\n')
  })
})

testUnless(noRoot)('of a root that is an overlay everything comes back: the template as it was changed, the homes, and what was made beside', async () => {
  const spec = { root: 'overlay', user: 'root' } as const
  await use(spec, async (sandbox) => {
    expect(await told(sandbox)).toEqual([])
    const { stderr } = await sandbox.run(`set -e
      rm /etc/hosts; echo x >> /etc/passwd; chmod 750 /usr/local; mkdir -p /opt/a/b; echo o > /opt/a/o; chown 1000:1000 /opt/a/o
      rm /var/run; ln -s /tmp /var/run; rm -r /var/tmp; echo w > /workspace/w; echo h > /home/user/.h; chown user /home/user/.h; echo s > /dev/shm/s
      cp /usr/bin/env /usr/bin/gbx-env; mv /usr/bin/tac /usr/bin/gbx-tac; mkdir /usr/bin/tac; echo t > /usr/bin/tac/t`)
    expect(stderr).toBe('')
    const expected = [
      'removed file /etc/hosts',
      'changed file /etc/passwd',
      'added file /home/user/.h',
      'added folder /opt',
      'added folder /opt/a',
      'added folder /opt/a/b',
      'added file /opt/a/o',
      'added file /usr/bin/gbx-env',
      'added file /usr/bin/gbx-tac',
      'changed folder /usr/bin/tac',
      'added file /usr/bin/tac/t',
      'changed folder /usr/local',
      'changed link /var/run',
      'removed folder /var/tmp',
      'added file /workspace/w',
    ]
    expect(await told(sandbox)).toEqual(expected)
    const { id, entries } = await sandbox.snapshot()
    expect(entries).toBeLessThan(30)
    await use({ ...spec, from: id }, async (again) => {
      expect(await told(again)).toEqual(expected)
      expect((await again.snapshot()).id).toBe(id)
      const looked = await again.run('stat -c "%n %a %U" /usr/local /opt/a/o /home/user/.h; ls /var; readlink /var/run; gbx-env echo ran; ls -A /dev/shm', {
        user: 'root',
      })
      expect(looked.stdout).toBe('/usr/local 750 root\n/opt/a/o 644 user\n/home/user/.h 644 user\nrun\n/tmp\nran\n')
    })
    const [fork] = (await sandbox.fork(1)) as [Sandbox]
    await fork.run('rm -r /opt; echo again > /etc/hosts')
    expect((await sandbox.run('cat /opt/a/o; ls /etc/hosts')).stdout).toBe('o\n')
    await fork.close()
    await sandbox.pause({ memory: false })
    await sandbox.resume()
    expect(await told(sandbox)).toEqual(expected)
    expect(await rejectionOf(Sandbox.create({ driver: 'bwrap', from: id, platform }))).toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('where this sandbox has no folder of its own'),
    })
  })
})

testUnless(noRoot)('what the host keeps from everyone is neither told as removed nor kept', async () => {
  await use({ root: 'overlay', user: 'root' }, async (sandbox) => {
    const hidden = spawnSync('find', ['/usr', '-xdev', '!', '-type', 'l', '!', '-perm', '-o=r', '-print', '-quit'], { encoding: 'utf8' }).stdout.trim()
    if (hidden !== '') expect((await sandbox.run(['ls', hidden])).exitCode).not.toBe(0)
    expect(await told(sandbox)).toEqual([])
    expect((await sandbox.snapshot()).entries).toBe(0)
  })
})
