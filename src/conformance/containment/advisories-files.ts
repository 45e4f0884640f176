import { ensure, text } from '../check.js'
import { gather, pieces, withFiles } from '../files-of.js'
import { python, until } from '../guest.js'
import type { SubjectSandbox } from '../subject.js'
import type { ContainmentCase } from './containment.js'

const swap = `import os, sys, time
os.makedirs('real', exist_ok=True)
open('real/' + sys.argv[2], 'w').write('mine')
end = time.monotonic() + 20
print('ready', flush=True)
while time.monotonic() < end:
    for source in ('real', sys.argv[1]):
        os.symlink(source, 'next'); os.rename('next', 'swapped')`

const rounds = 150

async function whileSwapped(sandbox: SubjectSandbox, place: { readonly folder: string; readonly name: string }, act: () => Promise<void>): Promise<void> {
  const swapping = await sandbox.start(python(swap, place.folder, place.name))
  let said = ''
  const reading = (async () => {
    for await (const { bytes } of swapping.output) said += text(bytes)
  })()
  reading.catch(() => undefined)
  ensure(await until(() => Promise.resolve(said.includes('ready'))), 'the guest must begin to swap', said)
  try {
    await act()
  } finally {
    await swapping.kill()
  }
}

/**
 * Docker, CVE-2018-15664: the path of a copy was resolved, and then used while the guest exchanged a part of it. Runc had the same with mounts, CVE-2021-30465, and again
 * with /proc, CVE-2023-27561; Judge0 with the files of a submission. Here whoever resolves a path is in the cell, and finds nothing else there.
 */
const exchanged: ContainmentCase = {
  id: 'advisories/exchanged-paths',
  name: 'while a guest exchanges a folder for a link to the host, no read or write of the API touches the host',
  group: 'advisories',
  threats: ['A-17', 'F-11'],
  tries: `Exchanges a folder for a link to a folder of the host as fast as it can, while the API reads, writes, lists and packs through it ${rounds} times.`,
  means: 'A path is checked by one and used by another: files of the host can be read and written.',
  needs: ['isolates'],
  places: ['user'],
  run: (subject) =>
    withFiles(subject, async ({ sandbox, read, write }) => {
      const { path, content } = subject.host.canaries.file
      const place = { folder: path.slice(0, path.lastIndexOf('/')), name: path.slice(path.lastIndexOf('/') + 1) }
      let [reached, refused] = [0, 0]
      const attempt = async (act: Promise<Uint8Array>): Promise<void> => {
        const got = await act.then(text, () => undefined)
        ensure(got?.includes(content) !== true, 'nothing may show the canary', got)
        if (got === undefined) refused += 1
        else reached += 1
      }
      await whileSwapped(sandbox, place, async () => {
        for (let n = 0; n < rounds; n += 1) {
          const through = `/workspace/swapped/${place.name}`
          if (n % 3 === 0) await attempt(read(through))
          else if (n % 3 === 1) await attempt(write(through, 'mine').then(() => new Uint8Array()))
          else await attempt(sandbox.files.pack('/workspace/swapped').then((stream) => gather(stream)))
        }
      })
      ensure(await subject.host.canaries.file.isUntouched(), 'the canary of the host must be untouched', path)
      ensure(reached > 0, 'some must have reached the folder that is its own', { reached, refused })
      return `${reached} reached its own folder, ${refused} were refused`
    }),
}

/** Docker, CVE-2019-14271: an archive was made by a process in the container that loaded a library of the guest's, with rights of the host. */
const guestLibraries: ContainmentCase = {
  id: 'advisories/guest-libraries',
  name: 'whoever packs and unpacks archives loads nothing of the guest’s, and has no more rights than it',
  group: 'advisories',
  threats: ['A-18', 'F-17'],
  tries: 'Leaves libraries by the names that a C library loads on demand, packs a folder, and looks at the ids of what is unpacked.',
  means: 'Code of a guest runs with the rights of the engine.',
  needs: ['isolates'],
  places: ['user'],
  run: (subject) =>
    withFiles(subject, async ({ sandbox, files }) => {
      const plant =
        'mkdir -p lib out && for n in libnss_files.so.2 libnss_compat.so.2 libc.so.6 ld.so.preload; do printf "\\177ELF broken" >lib/$n; cp lib/$n /tmp/; done; id -u'
      const { stdout } = await sandbox.run(['sh', '-c', plant])
      const archive = await gather(await files.pack('/workspace/lib'))
      await files.unpack('/workspace/out', pieces(archive))
      const owners = text((await sandbox.run(['sh', '-c', 'find out -type f -printf "%U\\n" | sort -u'])).stdout).trim()
      ensure(owners === text(stdout).trim(), 'what is unpacked must be its own', { owners, guest: text(stdout).trim() })
      return `packed ${archive.length} bytes, unpacked as ${owners}`
    }),
}

export const fileAdvisories: readonly ContainmentCase[] = [exchanged, guestLibraries]
