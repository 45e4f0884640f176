/**
 * Programs of peers from Debian's packages, unpacked into a folder of the benchmark's own: nothing is installed, no script of a package runs, no service starts, and
 * removing the folder removes all of it.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const binaries = ['usr/bin', 'usr/sbin', 'bin', 'sbin']

/** Unpacks packages and tells where their programs and libraries are. */
export async function unpackPackages(folder, names, { signal }) {
  const archives = join(folder, 'archives')
  const root = join(folder, 'packages')
  mkdirSync(archives, { recursive: true })
  mkdirSync(root, { recursive: true })
  await download(archives, names, signal)
  for (const name of readdirSync(archives)) await execute('dpkg-deb', ['-x', join(archives, name), root], { signal })
  const libraries = ['usr/lib', 'lib'].flatMap((each) => libraryFolders(join(root, each)))
  return {
    path: (program) => binaries.map((each) => join(root, each, program)).find((each) => existsSync(each)),
    env: { ...process.env, PATH: [...binaries.map((each) => join(root, each)), process.env.PATH].join(':'), LD_LIBRARY_PATH: libraries.join(':') },
  }
}

async function download(archives, names, signal) {
  const get = () => execute('apt-get', ['-q', '-o', 'APT::Sandbox::User=root', 'download', ...names], { cwd: archives, signal })
  try {
    await get()
  } catch (error) {
    if (process.getuid() !== 0) throw error
    // A machine that was just made has no lists of packages yet.
    await execute('apt-get', ['-q', 'update'], { signal })
    await get()
  }
}

function libraryFolders(folder) {
  if (!existsSync(folder)) return []
  return [
    folder,
    ...readdirSync(folder)
      .filter((name) => name.endsWith('-linux-gnu'))
      .map((name) => join(folder, name)),
  ]
}
